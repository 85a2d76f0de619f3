// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import Testing

@testable import Ubiquity

/// Tests which requests are sent a second time at once. Errors of connections that are closed while
/// they leave the pool cannot be caused at will.
struct RepeatedRequestTests {
    private func mayRepeat(
        _ method: ServerRequest.Method, after error: any Error
    ) throws -> Bool {
        let address = try ServerAddress("http://127.0.0.1:7717")
        return ServerRequest(method, ["config"], at: address)
            .mayRepeat(after: error, AnswerReceiver(address))
    }

    @Test(arguments: [ServerRequest.Method.get, .post])
    func `a request that its connection did not take is repeated`(
        method: ServerRequest.Method
    ) throws {
        #expect(try mayRepeat(method, after: ChannelError.ioOnClosedChannel))
    }

    @Test func `a request that the server may have is repeated if that does no harm`() throws {
        let error = IOError(errnoCode: ECONNRESET, reason: "read")
        #expect(try mayRepeat(.get, after: error))
        #expect(try !mayRepeat(.post, after: error))
    }
}
