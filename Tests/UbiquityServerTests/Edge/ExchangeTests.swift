// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// A request's body, as it arrives or not.
struct ExchangeTests {
    /// Runs on an event loop, with a request for which nothing has arrived but its head.
    private func withExchange<T: Sendable>(
        _ body: @escaping @Sendable (Exchange) throws -> T
    ) async throws -> T {
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        return try await loop.submit {
            let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/")
            return try body(Exchange(head, on: HTTPConnection(on: loop), origin: nil))
        }.get()
    }

    /// - Returns: The results of reading, a problem's code or the body.
    private func results(
        of parts: [HTTPServerRequestPart], isCutOff: Bool = false
    ) async throws -> [String] {
        try await withExchange { exchange in
            var results: [String] = []
            exchange.readBody(bytesMax: 5) { result in
                switch result {
                case .success(let body): results.append(String(buffer: body))
                case .failure(let problem): results.append(problem.code.rawValue)
                }
            }
            for part in parts { #expect(exchange.take(part)) }
            if isCutOff { exchange.abandon() }
            return results
        }
    }

    private func body(_ text: String) -> HTTPServerRequestPart { .body(ByteBuffer(string: text)) }

    @Test func `a body is read once, whole`() async throws {
        #expect(try await results(of: [body("ab"), body("cde"), .end(nil)]) == ["abcde"])
        #expect(try await results(of: [.end(nil)]) == [""])
    }

    @Test func `a body that is too large is reported at once, and its rest is ignored`()
        async throws
    {
        let parts = [body("ab"), body("cdef"), body("g"), .end(nil)]
        #expect(try await results(of: parts) == ["body-too-large"])
        #expect(try await results(of: parts, isCutOff: true) == ["body-too-large"])
    }

    @Test func `whoever waits for a body hears that the connection has ended`() async throws {
        #expect(try await results(of: [], isCutOff: true) == ["malformed"])
        #expect(try await results(of: [body("ab")], isCutOff: true) == ["malformed"])
        #expect(try await results(of: [body("ab"), .end(nil)], isCutOff: true) == ["ab"])
    }

    @Test func `a body waits until somebody reads it`() async throws {
        let isTaken = try await withExchange { $0.take(.body(ByteBuffer(string: "ab"))) }
        #expect(!isTaken)
    }
}

extension HTTPConnection {
    /// A connection without a socket.
    convenience init(on loop: any EventLoop) {
        let edge = Edge(
            ServerSettings(dataFolder: ""), tls: nil, metrics: ServerMetrics(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        self.init(
            edge, peer: nil, on: loop, limits: RequestLimitHandler(edge, now: 0), others: [],
            respond: { _ in })
    }
}
