// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
package import UbiquityCore
package import UbiquityWire

/// One request to a server.
package struct ServerRequest: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case patch = "PATCH"
        case delete = "DELETE"
    }

    let address: ServerAddress
    private let method: Method
    private let url: String
    private let credential: String?
    private let body: [UInt8]?
    /// The type of its answer. Nil with a body, which is answered in its own form; by a server of 0.1.0, in
    /// JSON.
    var accept: String?
    /// Whether it says which client sends it. A push does not: its device's stream has said so.
    var isNamed = true
    /// Whether it does no harm to send it twice. It then is, at once, where its connection ended
    /// before an answer: often an old one, of a server that has since restarted.
    var isRepeatable: Bool
    /// The maximum size of its answer, unless that is a list.
    var bounds = MessageBounds.small

    /// - Parameters:
    ///   - path: The segments of the path below `/v1`, which may contain any characters, as may the
    ///     values of the query.
    ///   - credential: The secret of a device or the operator, or a token to sign in with.
    ///   - body: A message in the protocol's binary format.
    package init(
        _ method: Method, _ path: [String], query: [(name: String, value: String)] = [],
        at address: ServerAddress, credential: String? = nil, body: [UInt8]? = nil
    ) {
        (self.address, self.method) = (address, method)
        url = address.url(path, query: query)
        (self.credential, self.body) = (credential, body)
        accept = body == nil ? WireFormat.protobuf.rawValue : nil
        isRepeatable = method == .get
    }

    /// A request of the device that is signed in.
    package init(
        _ method: Method, _ path: [String], query: [(name: String, value: String)] = [],
        of account: SignedInAccount, body: [UInt8]? = nil
    ) throws(LinkFailure) {
        self.init(
            method, path, query: query,
            at: try ServerAddress(account.server, certificates: account.certificates),
            credential: account.credential, body: body)
    }

    private static let chunkBytes = 16 << 10
    static let userAgent = "ubiquity/\(ClientVersion.text)"

    /// Sends the request, waits for the whole answer and decodes it.
    /// - Throws: ``LinkFailure`` for every status except 2xx, and if there is no answer or it
    ///   cannot be decoded.
    package func answer<Wire: WireMessage, Answer>(
        _ type: Wire.Type, isList: Bool = false,
        _ read: (Wire) throws(WireError) -> Answer
    ) async throws(LinkFailure) -> Answer {
        let receiver = receiver(isList: isList)
        let body = try await send(to: receiver)
        return try decode(type, read, from: body, of: receiver)
    }

    /// Does the same without waiting, on the connection's event loop: no other thread is woken.
    /// - Parameter answered: Called once.
    func answer<Wire: WireMessage, Answer: Sendable>(
        _ type: Wire.Type, isList: Bool = false,
        _ read: @escaping @Sendable (Wire) throws(WireError) -> Answer,
        answered: @escaping @Sendable (Result<Answer, LinkFailure>) -> Void
    ) {
        let receiver = receiver(isList: isList)
        send(to: receiver, isRepeated: false) { result in
            answered(
                result.flatMap { body in
                    Result { () throws(LinkFailure) in
                        try decode(type, read, from: body, of: receiver)
                    }
                })
        }
    }

    private func receiver(isList: Bool) -> AnswerReceiver {
        AnswerReceiver(address, isList ? .list : bounds)
    }

    private func decode<Wire: WireMessage, Answer>(
        _ type: Wire.Type, _ read: (Wire) throws(WireError) -> Answer,
        from body: ByteBuffer, of receiver: AnswerReceiver
    ) throws(LinkFailure) -> Answer {
        do {
            return try read(
                (accept == nil ? receiver.format : .protobuf)
                    .decode(type, from: [UInt8](buffer: body), within: receiver.bounds))
        } catch { throw LinkFailure(error, address) }
    }

    /// Sends the request, whose answer has no content.
    /// - Throws: As ``answer(_:)``.
    package func done() async throws(LinkFailure) {
        try await send(to: AnswerReceiver(address, .list))
    }

    /// Downloads an export piece by piece.
    /// - Parameter take: Called with each piece, in order. An error that it throws ends the
    ///   download.
    /// - Throws: ``LinkFailure``, or the error of `take`; the pieces so far are not a whole file
    ///   then.
    package func export(take: @escaping @Sendable ([UInt8]) throws -> Void) async throws {
        var request = self
        let type = WireFormat.json.rawValue
        request.accept = type
        let receiver = AnswerReceiver(
            address,
            pieces: .init(mediaType: type) { piece, _ in
                if piece.readableBytes > 0 { try take([UInt8](buffer: piece)) }
            })
        do { _ = try await request.send(to: receiver) } catch { throw receiver.failure ?? error }
    }

    /// Sends the request, and once more if ``mayRepeat(after:_:)`` says so.
    /// - Returns: The answer's body, unless the receiver reads it in pieces.
    /// - Throws: ``LinkFailure``.
    @discardableResult
    func send(to receiver: AnswerReceiver) async throws(LinkFailure) -> ByteBuffer {
        do { return try await result(begin(receiver)) } catch {
            guard mayRepeat(after: error, receiver) else { throw await failure(of: error) }
        }
        do { return try await result(begin(receiver)) } catch { throw await failure(of: error) }
    }

    private func send(
        to receiver: AnswerReceiver, isRepeated: Bool,
        ended: @escaping @Sendable (Result<ByteBuffer, LinkFailure>) -> Void
    ) {
        let task: HTTPClient.Task<ByteBuffer>
        do throws(LinkFailure) { task = try begin(receiver) } catch {
            return ended(.failure(error))
        }
        task.futureResult.whenComplete { result in
            switch result {
            case .success(let body): ended(.success(body))
            case .failure(let error) where !isRepeated && mayRepeat(after: error, receiver):
                send(to: receiver, isRepeated: true, ended: ended)
            case .failure(let error): Task { ended(.failure(await failure(of: error))) }
            }
        }
    }

    /// Whether to send the request a second time: its answer has not begun, and the server closed a
    /// connection that was kept from an earlier request before it had all of this one, or it does no
    /// harm to send it twice.
    func mayRepeat(after error: any Error, _ receiver: AnswerReceiver) -> Bool {
        guard !receiver.hasBegun else { return false }
        if error as? ChannelError == .ioOnClosedChannel { return true }
        return isRepeatable && LinkFailure.isClosedConnection(error)
    }

    private func result(_ task: HTTPClient.Task<ByteBuffer>) async throws -> ByteBuffer {
        try await withTaskCancellationHandler {
            try await task.get()
        } onCancel: {
            task.cancel()
        }
    }

    private func begin(
        _ receiver: AnswerReceiver
    ) throws(LinkFailure) -> HTTPClient.Task<ByteBuffer> {
        let task = SharedHTTPClient.client.execute(request: try prepared(), delegate: receiver)
        receiver.watch(task)
        return task
    }

    private func failure(of error: any Error) async -> LinkFailure {
        guard CertificateDiagnosis.concerns(error) else { return LinkFailure(error, address) }
        return LinkFailure(.unreachable, await CertificateDiagnosis.sentence(of: error, address))
    }

    private func prepared() throws(LinkFailure) -> HTTPClient.Request {
        var headers: HTTPHeaders = [:]
        if let accept { headers.add(name: "accept", value: accept) }
        if isNamed { headers.add(name: "user-agent", value: Self.userAgent) }
        // HTTP requires a host. The path of a closed socket may later be that of another one.
        if address.isSocket {
            headers.add(contentsOf: [("host", "localhost"), ("connection", "close")])
        }
        if let credential { headers.add(name: "authorization", value: "Bearer \(credential)") }
        if body != nil { headers.add(name: "content-type", value: WireFormat.protobuf.rawValue) }
        do {
            return try HTTPClient.Request(
                url: url, method: HTTPMethod(rawValue: method.rawValue), headers: headers,
                body: body.map(Self.inChunks),
                tlsConfiguration: address.certificates.map(TrustedCertificates.configuration))
        } catch { throw LinkFailure(error, address) }
    }

    /// In chunks, so that the progress of sending is visible.
    private static func inChunks(_ bytes: [UInt8]) -> HTTPClient.Body {
        .stream(contentLength: Int64(bytes.count)) { write(ByteBuffer(bytes: bytes), to: $0) }
    }

    private static func write(
        _ bytes: ByteBuffer, to writer: HTTPClient.Body.StreamWriter
    ) -> EventLoopFuture<Void> {
        var rest = bytes
        let chunk = rest.readSlice(length: min(chunkBytes, bytes.readableBytes)) ?? ByteBuffer()
        let written = writer.write(.byteBuffer(chunk))
        guard rest.readableBytes > 0 else { return written }
        // In a turn of its own, or the chunks of a long body would pile up on the stack.
        return written.flatMapWithEventLoop { [rest] _, loop in
            loop.flatSubmit { write(rest, to: writer) }
        }
    }
}

/// The version of this library and of the program, as sent to servers.
package enum ClientVersion {
    package static let text = "0.2.0"
}
