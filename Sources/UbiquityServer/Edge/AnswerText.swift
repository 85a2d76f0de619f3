// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1

/// The text of answers in HTTP/1.
enum AnswerText {
    /// - Parameter headers: None may contain the end of a line.
    static func head(
        _ status: HTTPResponseStatus, _ headers: HTTPHeaders, version: HTTPVersion
    ) -> ByteBuffer {
        var text = ByteBuffer()
        text.reserveCapacity(256)
        text.writeString(version == .http1_0 ? "HTTP/1.0 " : "HTTP/1.1 ")
        text.writeString(status == .ok ? "200 OK" : "\(status.code) \(status.reasonPhrase)")
        text.writeString("\r\n")
        for (name, value) in headers {
            text.writeString(name)
            text.writeString(": ")
            text.writeString(value)
            text.writeString("\r\n")
        }
        text.writeString("\r\n")
        return text
    }

    static let proceed = ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")

    /// Before a chunk of so many bytes. After it comes ``chunkEnd``.
    static func chunkBegin(_ bytes: Int) -> String { String(bytes, radix: 16) + "\r\n" }
    static let chunkEnd = "\r\n"
    static let lastChunk = "0\r\n\r\n"
}
