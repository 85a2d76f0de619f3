// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import NIOHTTPTypes

/// A body that the client only sends on request (`Expect: 100-continue`). It is requested when
/// reading begins. A request that is refused by its head gets its answer instead.
struct AwaitedBody: AsyncSequence, Sendable {
    let body: RequestBody
    let channel: any Channel

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var parts: RequestBody.AsyncIterator
        /// Nil once the body was requested.
        fileprivate var channel: (any Channel)?

        @concurrent mutating func next() async throws -> ByteBuffer? {
            if let channel {
                self.channel = nil
                try await channel.writeAndFlush(
                    HTTPResponsePart.head(HTTPResponse(status: .continue)))
            }
            return try await parts.next()
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(parts: body.makeAsyncIterator(), channel: channel)
    }
}

extension Request {
    var awaitsContinue: Bool { headers[.expect]?.lowercased() == "100-continue" }
}
