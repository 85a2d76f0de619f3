// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
import Foundation
import Testing
import UbiquityHTTP

/// A process that forks.
@Suite struct HTTPForkTests {
    /// Ends the child.
    private final class ChildReceiver: HTTPReceiver {
        let silenceMillisecondsMax: Int64 = 60_000

        func began(_ head: HTTPAnswerHead) throws {}
        func received(_ piece: UnsafeRawBufferPointer) throws {}
        func ended(_ error: (any Error)?) { _exit(error == nil ? 42 : 1) }
    }

    @Test func `a child that was forked has connections of its own`() async throws {
        let server = try RawServer { connection in
            while connection.request() != nil { connection.answer() }
        }
        let client = CurlClient(environment: [:])
        let request = HTTPRequest("GET", server.url)
        #expect(try await request.sent(by: client).isComplete)
        // Swift hides it.
        let symbol = try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork"))
        let fork = unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)
        let child = fork()
        if child == 0 {
            alarm(60)
            let receiver = ChildReceiver()
            _ = client.begin(request, receiver)
            while true { usleep(100_000) }
        }
        try #require(child > 0)
        var status: Int32 = 0
        #expect(waitpid(child, &status, 0) == child)
        #expect(status == 42 << 8)
        #expect(server.accepted == 2)
        #expect(try await request.sent(by: client).isComplete)
        #expect(server.accepted == 2)
    }
}
#endif
