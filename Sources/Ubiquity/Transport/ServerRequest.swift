// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// One request to a server.
struct ServerRequest {
    var address: ServerAddress
    var method: HTTPMethod
    var url: String
    var credential: String?
    var body: [UInt8]?
    var accept = WireFormat.protobuf.rawValue
    /// The maximum size of its answer.
    var bounds = MessageBounds.small

    private static let chunkBytes = 16 << 10
    static let userAgent = "ubiquity/\(ClientVersion.text)"

    /// Sends the request, waits for the whole answer and decodes it.
    /// - Throws: ``LinkFailure`` for every status except 2xx, and if there is no answer or it
    ///   cannot be decoded.
    func answer<Wire: WireMessage, Answer>(
        _ type: Wire.Type, _ shape: MessageShape = .fields,
        _ read: (Wire) throws(WireError) -> Answer
    ) async throws(LinkFailure) -> Answer {
        let body = try await body()
        do {
            return try read(
                WireFormat.protobuf.decode(
                    type, shape, from: [UInt8](buffer: body), within: bounds))
        } catch { throw LinkFailure(error, address) }
    }

    /// Sends a request whose answer has no content.
    /// - Throws: As ``answer(_:)``.
    func done() async throws(LinkFailure) {
        var request = self
        request.bounds = .list
        _ = try await request.body()
    }

    private func body() async throws(LinkFailure) -> ByteBuffer {
        let silence = SilenceWatch(address)
        let answer = try await stream(to: AnswerReceiver(address, bounds, silence), silence)
        if let refusal = answer.refusal(address) { throw refusal }
        return answer.body
    }

    /// Sends the request and passes the answer to a delegate as it arrives.
    /// - Throws: ``LinkFailure``.
    func stream<Delegate: HTTPClientResponseDelegate>(
        to delegate: Delegate, _ silence: SilenceWatch
    ) async throws(LinkFailure) -> Delegate.Response {
        let task = SharedHTTPClient.client.execute(request: try prepared(), delegate: delegate)
        silence.watch(task)
        return try await Self.result(of: task, address)
    }

    private func prepared() throws(LinkFailure) -> HTTPClient.Request {
        var headers: HTTPHeaders = ["accept": accept, "user-agent": Self.userAgent]
        if let credential { headers.add(name: "authorization", value: "Bearer \(credential)") }
        if body != nil { headers.add(name: "content-type", value: WireFormat.protobuf.rawValue) }
        do {
            return try HTTPClient.Request(
                url: url, method: method, headers: headers, body: body.map(Self.inChunks),
                tlsConfiguration: address.certificates.map(TrustedCertificates.configuration))
        } catch { throw LinkFailure(error, address) }
    }

    /// In chunks, so that the progress of sending is visible.
    private static func inChunks(_ bytes: [UInt8]) -> HTTPClient.Body {
        .stream(contentLength: Int64(bytes.count)) { writer in
            // Nothing is written yet: the first write only reveals the event loop.
            writer.write(.byteBuffer(ByteBuffer())).flatMapWithEventLoop { _, loop in
                loop.makeFutureWithTask {
                    for start in stride(from: 0, to: bytes.count, by: chunkBytes) {
                        let chunk = bytes[start..<min(start + chunkBytes, bytes.count)]
                        try await writer.write(.byteBuffer(ByteBuffer(bytes: chunk))).get()
                    }
                }
            }
        }
    }

    private static func result<Answer: Sendable>(
        of task: HTTPClient.Task<Answer>, _ address: ServerAddress
    ) async throws(LinkFailure) -> Answer {
        do {
            return try await withTaskCancellationHandler {
                try await task.get()
            } onCancel: {
                task.cancel()
            }
        } catch {
            guard CertificateDiagnosis.concerns(error) else { throw LinkFailure(error, address) }
            throw LinkFailure(
                .unreachable, await CertificateDiagnosis.sentence(of: error, address))
        }
    }
}
