// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore
internal import UbiquityHTTP
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
    /// Shows that this device has the account's key; nil for a device that has none.
    var proof: Bytes32?

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
            method, path, query: query, at: try ServerAddress(of: account),
            credential: account.credential, body: body)
    }

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

    /// Does the same without waiting.
    /// - Parameter answered: Called once, on the queue of the HTTP client, so it must not block.
    func answer<Wire: WireMessage, Answer: Sendable>(
        _ type: Wire.Type, isList: Bool = false,
        _ read: @escaping @Sendable (Wire) throws(WireError) -> Answer,
        answered: @escaping @Sendable (Result<Answer, LinkFailure>) -> Void
    ) {
        let receiver = receiver(isList: isList)
        send(to: receiver) { result in
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
        from body: [UInt8], of receiver: AnswerReceiver
    ) throws(LinkFailure) -> Answer {
        do {
            return try read(
                (accept == nil ? receiver.format : .protobuf)
                    .decode(type, from: body, within: receiver.bounds))
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
                if !piece.isEmpty { try take([UInt8](piece)) }
            })
        do { _ = try await request.send(to: receiver) } catch { throw receiver.failure ?? error }
    }

    /// Sends the request, and once more where ``isRepeatable`` allows it.
    /// - Returns: The answer's body, unless the receiver reads it in pieces.
    /// - Throws: ``LinkFailure``.
    @discardableResult
    func send(to receiver: AnswerReceiver) async throws(LinkFailure) -> [UInt8] {
        let result: Result<[UInt8], LinkFailure> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                send(to: receiver) { continuation.resume(returning: $0) }
            }
        } onCancel: {
            receiver.cancel()
        }
        return try result.get()
    }

    /// Does the same without waiting.
    /// - Parameter ended: Called once.
    func send(
        to receiver: AnswerReceiver,
        ended: @escaping @Sendable (Result<[UInt8], LinkFailure>) -> Void
    ) {
        receiver.send(prepared, isRepeatable: isRepeatable, ended: ended)
    }

    private var prepared: HTTPRequest {
        var request = HTTPRequest(method.rawValue, url)
        request.socket = address.socket
        (request.certificates, request.pin) = (address.certificates, address.pin)
        request.body = body
        request.isIdempotent = isRepeatable || method == .get
        if let accept { request.fields.append(("accept", accept)) }
        if isNamed { request.fields.append(("user-agent", Self.userAgent)) }
        // The path of a closed socket may later be that of another one.
        if address.socket != nil { request.fields.append(("connection", "close")) }
        if let credential { request.fields.append(("authorization", "Bearer \(credential)")) }
        if let proof {
            request.fields.append(
                (keyProofHeader, Data(proof.bytes).base64EncodedString()))
        }
        if body != nil { request.fields.append(("content-type", WireFormat.protobuf.rawValue)) }
        return request
    }
}

/// The version of this library and of the program, as sent to servers.
package enum ClientVersion {
    package static let text = "0.9.0"
}
