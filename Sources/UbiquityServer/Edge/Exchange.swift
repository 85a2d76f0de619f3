// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

/// One request on a connection, and the answer to it. The request may still be arriving when it is
/// answered.
///
/// State: confined to the connection's event loop. Unchecked because routes that answer in a task
/// use its constants there, and `route` and `parameters`, which are set before.
final class Exchange: @unchecked Sendable {
    let request: HTTPRequestHead
    let connection: HTTPConnection
    /// The origin of the request, behind trusted proxies; nil if unknown.
    let origin: IPAddress?
    /// The pattern of the address, for the metrics; never the requested path.
    var route = "none"
    /// The parts of the path that the pattern names, not decoded.
    var parameters: [(name: Substring, text: Substring)] = []

    /// Takes an error instead of ``refuse(_:)``, for an answer that goes on after one.
    var handleError: ((any Error) -> Void)?

    private var input = Input.waiting
    private var output = Output.none
    /// Whether the connection is gone.
    private var isAbandoned = false
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

    init(_ request: HTTPRequestHead, on connection: HTTPConnection, origin: IPAddress?) {
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
    /// 100-continue`). Calls back once, possibly at once; with a ``Problem`` too if the connection
    /// ends before the body does.
    /// - Parameters:
    ///   - bytesMax: A larger body is a ``Problem``, without being read to the end.
    ///   - permit: Is charged with the bytes that were read, from the budget for bodies; nil for a
    ///     small body.
    func readBody(
        bytesMax: Int, permit: AccountShares.Permit? = nil,
        then: @escaping (Result<ByteBuffer, Problem>) -> Void
    ) {
        loop.assertInEventLoop()
        if let length = request.headers.first(name: "content-length").flatMap({ Int($0) }),
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
        case .ended: then(isAbandoned ? .failure(.bodyIncomplete) : .success(ByteBuffer()))
        case .reading, .discarding: then(.failure(.bodyIncomplete))
        }
    }

    /// - Returns: False if the part has to wait.
    func take(_ part: HTTPServerRequestPart) -> Bool {
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
        var headers = answer.headers
        // Without a body, its length is known only from the headers.
        if answer.status != .noContent, hasBody || answer.bytes > 0,
            !headers.contains(name: "Content-Length")
        {
            headers.add(name: "Content-Length", value: "\(answer.bytes)")
        }
        guard begin(answer.status, headers) else { return }
        connection.send(hasBody ? answer : Answer())
    }

    func refuse(_ problem: Problem) {
        guard !isAnswered else { return }
        connection.edge.note(problem, route: route)
        answer(problem.answer)
    }

    /// Answers that the connection may not stay. Not recorded as a request, because it says
    /// nothing about the request.
    func refuseConnection(_ problem: Problem, _ limit: EdgeLimit) {
        beginOutput()
        connection.refuse(problem, limit)
    }

    /// Whether an answer has a body.
    var hasBody: Bool { request.method != .HEAD }

    /// Begins an answer.
    /// - Parameter headers: With the body's length, unless that is not known.
    /// - Returns: False if the request was already answered.
    func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders) -> Bool {
        loop.assertInEventLoop()
        guard !isAnswered else { return false }
        beginOutput()
        let edge = connection.edge
        edge.record(request, route: route, status, origin, seconds: start.secondsAgo)
        var headers = headers
        headers.add(name: "Date", value: edge.date.text)
        edge.addHeaders(to: &headers, for: request)
        connection.begin(status, headers, hasBody: hasBody)
        return true
    }

    private func beginOutput() {
        output = .begun
        switch input {
        case .waiting, .reading: input = .discarding
        case .discarding, .ended: break
        }
    }

    /// The connection has sent the whole answer.
    func answered() { output = .ended }

    /// The connection is gone: nobody hears of this exchange any more.
    func abandon() {
        let reader: Reader? = if case .reading(_, let reader) = input { reader } else { nil }
        (input, output, isAbandoned) = (.ended, .ended, true)
        reader?.then(.failure(.bodyIncomplete))
    }
}

extension HTTPRequestHead {
    var awaitsContinue: Bool { headers.first(name: "expect")?.lowercased() == "100-continue" }
}
