// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import NIOHTTP1
import Testing
import UbiquityCore

@testable import Ubiquity

/// How long a client tolerates a server's silence.
struct SilenceTests {
    private static let waits: [(Int64, Int64)] = [(0, 50_000), (20, 50_000), (60, 150_000)]

    @Test(arguments: waits)
    func `a stream is waited for as long as its server says`(
        keepAliveSeconds: Int64, milliseconds: Int64
    ) throws {
        let receiver = StreamReceiver(
            try ServerAddress("http://127.0.0.1:1"), within: IntakeLimits(nil).message
        ) { _ in }
        #expect(receiver.silence.milliseconds == 50_000)
        receiver.hear(
            .ready(
                Cursor("1-1")!,
                ServerConfig(
                    serverMilliseconds: 1, limits: StoreLimits(), allowance: Allowance(),
                    deletionsRememberedSeconds: 1, keepAliveSeconds: keepAliveSeconds)))
        #expect(receiver.silence.milliseconds == milliseconds)
    }

    @Test func `a request of which nothing is heard is given up`() async throws {
        let server = try await StubServer { _ in nil }
        let address = try ServerAddress(server.address)
        let silence = SilenceWatch(address, milliseconds: 1_000)
        let request = ServerRequest(.get, ["config"], at: address)
        let failure = await #expect(throws: LinkFailure.self) {
            _ = try await request.stream(to: AnswerReceiver(address, .small, silence), silence)
        }
        #expect(failure?.kind == .timedOut)
        #expect(
            failure?.detail == "nothing was heard of the server at \(server.address) for 1 seconds")
    }
}
