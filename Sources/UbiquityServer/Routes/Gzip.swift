// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOEmbedded
internal import NIOHTTP1
internal import NIOHTTPCompression

/// The inverse of `gzip`, which NIO has as a handler of a request's body.
enum Gzip {
    /// No file of the page is nearly as large.
    private static let bytesMax = 1 << 22

    /// - Throws: NIO's errors, for bytes that are not one whole member of gzip, and for one that is
    ///   too large.
    static func inflated(_ bytes: ByteBuffer) throws -> ByteBuffer {
        let channel = EmbeddedChannel(
            handler: NIOHTTPRequestDecompressor(limit: .size(bytesMax)))
        let head = HTTPRequestHead(
            version: .http1_1, method: .POST, uri: "/", headers: ["Content-Encoding": "gzip"])
        for part in [HTTPServerRequestPart.head(head), .body(bytes), .end(nil)] {
            try channel.writeInbound(part)
        }
        var content = ByteBuffer()
        while let part = try channel.readInbound(as: HTTPServerRequestPart.self) {
            if case .body(var piece) = part { content.writeBuffer(&piece) }
        }
        _ = try channel.finish()
        return content
    }
}
