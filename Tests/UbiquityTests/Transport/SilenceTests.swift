// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Testing
import UbiquityCore
import UbiquityWire

@testable import Ubiquity

/// Tests how long a client tolerates a server's silence.
struct SilenceTests {
    private static let waits: [(Int64, Int64)] = [(0, 50_000), (20, 50_000), (60, 150_000)]

    @Test(arguments: waits)
    func `a stream is waited for as long as its server says`(
        keepAliveSeconds: Int64, milliseconds: Int64
    ) throws {
        var ready = WireReady()
        ready.cursor = "1-1"
        ready.config = WireConfig(
            ServerConfig(
                serverMilliseconds: 1, limits: StoreLimits(), allowance: Allowance(),
                deletionsRememberedSeconds: 1, keepAliveSeconds: keepAliveSeconds))
        let data = String(decoding: WireFormat.json.encode(ready), as: UTF8.self)
        var silence = ChangeStream.silenceMilliseconds
        #expect(silence == 50_000)
        var stream = ChangeStream(within: IntakeLimits(nil).message)
        try Array("event: ready\ndata: \(data)\n\n".utf8).withUnsafeBytes {
            _ = try stream.take($0, &silence)
        }
        #expect(silence == milliseconds)
    }

    @Test func `a request without an answer is given up`() async throws {
        let server = try await StubServer { _ in nil }
        let address = try ServerAddress(server.address)
        let request = ServerRequest(.get, ["config"], at: address)
        let failure = await #expect(throws: LinkFailure.self) {
            try await request.send(to: AnswerReceiver(address, silenceMilliseconds: 1_000))
        }
        #expect(failure?.kind == .timedOut)
        #expect(
            failure?.detail == "the server at \(server.address) sent nothing for 1 seconds")
    }
}
