// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore
internal import UbiquityHTTP
internal import UbiquityWire

/// Sends a request and receives its answer, whole or piece by piece.
///
/// Shared state: `attempt`, guarded by its mutex. All other variables belong to the client's queue,
/// on which it calls, and are read when the answer has ended; hence unchecked.
final class AnswerReceiver: HTTPReceiver, @unchecked Sendable {
    /// A reader of an answer that is too long to be collected, or has no end.
    struct Pieces {
        /// The type of an answer to read, without parameters.
        var mediaType: String
        /// Takes each piece, in order: an empty one first, when the answer begins. May change how
        /// long the server may be silent, in milliseconds.
        var take: (UnsafeRawBufferPointer, inout Int64) throws -> Void
    }

    /// The form of the answer.
    var format: WireFormat { mediaType.flatMap(WireFormat.init(mediaType:)) ?? .protobuf }

    private let address: ServerAddress
    private let client: any HTTPClient
    /// The maximum size of an answer that is collected.
    let bounds: MessageBounds
    private let pieces: Pieces?
    private(set) var silenceMillisecondsMax: Int64
    private var head: HTTPAnswerHead?
    /// Whether the answer has the type that ``pieces`` reads.
    private var isRead = false
    /// The answer as far as it is not read.
    private var body: [UInt8] = []
    /// The error of the reader, if any.
    private(set) var failure: (any Error)?
    private let attempt = Mutex(Attempt())

    private struct Attempt {
        var request: HTTPRequest?
        var isCancelled = false
        /// The number of times that the request was begun.
        var count = 0
        /// Whether the request may be sent a second time.
        var isRepeatable = false
        var cancel: (@Sendable () -> Void)?
        var ended: (@Sendable (Result<[UInt8], LinkFailure>) -> Void)?
    }

    /// - Parameters:
    ///   - bounds: See ``bounds``.
    ///   - silenceMilliseconds: The longest time without a byte.
    ///   - pieces: The reader of a successful answer; nil to collect it.
    init(
        _ address: ServerAddress, _ bounds: MessageBounds = .small,
        silenceMilliseconds: Int64 = IdleTimeout.answerMilliseconds, pieces: Pieces? = nil,
        client: any HTTPClient = sharedHTTPClient
    ) {
        self.address = address
        self.bounds = bounds
        self.pieces = pieces
        self.client = client
        silenceMillisecondsMax = silenceMilliseconds
    }

    // MARK: - The request

    /// Sends the request, and once more where its connection was closed before the answer began, if
    /// it is repeatable.
    /// - Parameter ended: Called once, on the client's queue, with the body of the answer unless it
    ///   is read in pieces.
    func send(
        _ request: HTTPRequest, isRepeatable: Bool,
        ended: @escaping @Sendable (Result<[UInt8], LinkFailure>) -> Void
    ) {
        attempt.withLock { attempt in
            attempt.request = request
            attempt.isRepeatable = isRepeatable
            attempt.ended = ended
        }
        begin(request)
    }

    /// Ends the request, if it has not ended.
    func cancel() {
        let cancel = attempt.withLock { attempt in
            attempt.isCancelled = true
            return attempt.cancel
        }
        cancel?()
    }

    private func begin(_ request: HTTPRequest) {
        let count = attempt.withLock { attempt in
            attempt.count += 1
            return attempt.count
        }
        let cancel = client.begin(request, self)
        let isCancelled = attempt.withLock { attempt in
            // It may have ended meanwhile, and been begun again.
            if attempt.count == count { attempt.cancel = cancel }
            return attempt.isCancelled
        }
        if isCancelled { cancel() }
    }

    func ended(_ error: (any Error)?) {
        if let request = takeRepeat(after: error) { return begin(request) }
        let ended = attempt.withLock { attempt in
            defer { (attempt.ended, attempt.cancel) = (nil, nil) }
            return attempt.ended
        }
        ended?(result(error))
    }

    /// The request to send a second time: often its connection was an old one, of a server that has
    /// since restarted.
    private func takeRepeat(after error: (any Error)?) -> HTTPRequest? {
        guard head == nil, let failure = error as? HTTPFailure, failure.isOfClosedConnection else {
            return nil
        }
        return attempt.withLock { attempt in
            guard attempt.isRepeatable, !attempt.isCancelled else { return nil }
            attempt.isRepeatable = false
            return attempt.request
        }
    }

    private func result(_ error: (any Error)?) -> Result<[UInt8], LinkFailure> {
        switch error {
        case nil: refusal.map(Result.failure) ?? .success(body)
        case HTTPFailure.silent?:
            .failure(
                LinkFailure(
                    .timedOut,
                    "the server at \(address) sent nothing for \(silenceMillisecondsMax / 1_000) "
                        + "seconds"))
        case let error?: .failure(LinkFailure(error, address))
        }
    }

    // MARK: - The answer

    func began(_ head: HTTPAnswerHead) throws {
        self.head = head
        let type = mediaType?.lowercased() ?? ""
        isRead = head.status == 200 && pieces.map { type.hasPrefix($0.mediaType) } ?? false
        if isRead {
            try read(UnsafeRawBufferPointer(start: nil, count: 0))
        } else {
            try admit(bytes: head["content-length"].flatMap { Int($0) } ?? 0)
        }
    }

    func received(_ piece: UnsafeRawBufferPointer) throws {
        if isRead { try read(piece) } else { try collect(piece) }
    }

    private func read(_ piece: UnsafeRawBufferPointer) throws {
        do { try pieces?.take(piece, &silenceMillisecondsMax) } catch {
            failure = error
            throw error
        }
    }

    private func collect(_ piece: UnsafeRawBufferPointer) throws {
        let bytes = body.count + piece.count
        if bytes <= bounds.bytes { body += piece }
        try admit(bytes: bytes)
    }

    /// A refusal counts, however long the page is that a proxy sends with it.
    private func admit(bytes: Int) throws {
        do { try bounds.check(bytes: bytes) } catch { throw refusal ?? error }
    }

    private var mediaType: String? { head?["content-type"] }

    /// The failure that the answer means; nil for success.
    private var refusal: LinkFailure? {
        guard let head else { return LinkFailure(HTTPFailure.closed, address) }
        guard (200..<300).contains(head.status) else {
            return LinkFailure(head, body: body, address)
        }
        return isRead || pieces == nil && isOfServer(head) ? nil : .foreign(head, address)
    }

    /// Whether a successful answer has one of the protocol's types, or no content.
    private func isOfServer(_ head: HTTPAnswerHead) -> Bool {
        head.status == 204 || mediaType.flatMap(WireFormat.init(mediaType:)) != nil
    }
}
