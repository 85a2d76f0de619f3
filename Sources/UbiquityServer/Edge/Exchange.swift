// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes
internal import UbiquityCore

/// One request on a connection, and the answer to it. The request may still be arriving when it is
/// answered.
///
/// State: confined to the connection's event loop.
final class Exchange {
    let request: HTTPRequest
    let connection: HTTPConnection
    /// The origin of the request, behind trusted proxies; nil if unknown.
    let origin: IPAddress?
    /// The pattern of the address, for the metrics; never the requested path.
    var route = "none"

    private var input = Input.waiting
    private var output = Output.none
    private let start = NIODeadline.now()

    private enum Input {
        /// Nobody has asked for the body yet.
        case waiting
        case reading(ByteBuffer, Reader)
        /// The rest of the body is of no interest.
        case discarding
        case ended
    }

    private struct Reader {
        var bytesMax: Int
        var permit: AccountShares.Permit?
        var then: (Result<ByteBuffer, Problem>) -> Void
    }

    private enum Output {
        case none
        case begun
        case ended
    }

    init(_ request: HTTPRequest, on connection: HTTPConnection, origin: IPAddress?) {
        self.request = request
        self.connection = connection
        self.origin = origin
    }

    var loop: any EventLoop { connection.loop }
    var isAnswered: Bool { if case .none = output { false } else { true } }
    var isOver: Bool {
        if case .ended = output, case .ended = input { true } else { false }
    }
    var hasEnded: Bool { if case .ended = input { true } else { false } }

    // MARK: - The body

    /// Reads the body, which is requested now if the client waits for that (`Expect:
    /// 100-continue`). Calls back once, if the connection does not end before, possibly at once.
    /// - Parameters:
    ///   - bytesMax: A larger body is a ``Problem``, without being read to the end.
    ///   - permit: Is charged with the bytes that were read, from the budget for bodies; nil for a
    ///     small body.
    func readBody(
        bytesMax: Int, permit: AccountShares.Permit? = nil,
        then: @escaping (Result<ByteBuffer, Problem>) -> Void
    ) {
        if let length = request.headerFields[.contentLength].flatMap({ Int($0) }),
            length > bytesMax
        {
            return then(.failure(Problem.bodyTooLarge(max: bytesMax)))
        }
        switch input {
        case .waiting:
            input = .reading(
                ByteBuffer(), Reader(bytesMax: bytesMax, permit: permit, then: then))
            if request.awaitsContinue { connection.writeContinue() }
            connection.process()
        case .ended: then(.success(ByteBuffer()))
        case .reading, .discarding: break
        }
    }

    /// - Returns: False if the part has to wait.
    func take(_ part: HTTPRequestPart) -> Bool {
        switch (input, part) {
        case (.ended, _), (.waiting, .body), (_, .head): return false
        case (.waiting, .end), (.discarding, .end): input = .ended
        case (.discarding, .body): break
        case (.reading(let whole, let reader), .end):
            input = .ended
            reader.then(.success(whole))
        case (.reading(let whole, let reader), .body(let part)): append(part, to: whole, reader)
        }
        return true
    }

    private func append(_ part: ByteBuffer, to whole: ByteBuffer, _ reader: Reader) {
        input = .discarding
        guard whole.readableBytes + part.readableBytes <= reader.bytesMax else {
            return reader.then(.failure(Problem.bodyTooLarge(max: reader.bytesMax)))
        }
        guard reader.permit?.take(part.readableBytes) ?? true else {
            return reader.then(.failure(Problem.bodiesInMemory))
        }
        guard whole.readableBytes > 0 else {
            input = .reading(part, reader)
            return
        }
        var whole = whole
        whole.writeImmutableBuffer(part)
        input = .reading(whole, reader)
    }

    // MARK: - The answer

    /// Does nothing if the request was already answered.
    func answer(_ answer: Answer) {
        guard begin(HTTPResponse(status: answer.status, headerFields: answer.headers), answer.bytes)
        else { return }
        connection.send(request.method == .head ? Answer() : answer)
    }

    func refuse(_ problem: Problem) {
        connection.edge.note(problem, route: route)
        answer(problem.answer)
    }

    /// Answers that the connection may not stay. Not recorded as a request, because it says
    /// nothing about the request.
    func refuseConnection(_ problem: Problem, _ limit: EdgeLimit) {
        connection.edge.note(limit)
        connection.edge.metrics.refused(problem.code)
        output = .begun
        if !hasEnded { input = .discarding }
        for part in connection.edge.lastAnswer(problem) { connection.write(part) }
        connection.answerEnded()
    }

    /// Sends the head of the answer.
    /// - Parameter length: Nil if the body's length is not known.
    /// - Returns: False if there is a head already.
    func begin(_ head: HTTPResponse, _ length: Int?) -> Bool {
        guard case .none = output else { return false }
        output = .begun
        if case .waiting = input { input = .discarding }
        if case .reading = input { input = .discarding }
        var head = head
        if let length, head.headerFields[.contentLength] == nil, head.status != .noContent {
            head.headerFields[.contentLength] = "\(length)"
        }
        head.headerFields[.date] = connection.edge.date.text
        let elapsed = NIODeadline.now() - start
        connection.edge.record(
            request, route: route, head.status, origin, seconds: Double(elapsed.nanoseconds) / 1e9)
        connection.edge.addHeaders(to: &head.headerFields, for: request)
        connection.write(.head(head))
        return true
    }

    /// The connection has sent the whole answer.
    func answered() { output = .ended }

    /// The connection is gone: nobody hears of this exchange any more.
    func abandon() {
        input = .ended
        output = .ended
    }
}

extension HTTPRequest {
    var awaitsContinue: Bool { headerFields[.expect]?.lowercased() == "100-continue" }
}
