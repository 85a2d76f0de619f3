// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness

/// A bare HTTP/1.1 connection to this machine that stays open: a socket and nothing around it.
final class HTTPConnection {
    private let socket: Int32
    private var buffer: [UInt8] = []
    private static let secondsMax = 10

    init(port: Int) throws {
        #if canImport(Glibc)
        let kind = Int32(SOCK_STREAM.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        socket = Foundation.socket(AF_INET, kind, 0)
        guard socket >= 0 else { throw Trouble.system("socket") }
        setOptions()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, size) }
        }
        guard status == 0 else { throw Trouble.system("connect") }
    }

    deinit { close(socket) }

    private func setOptions() {
        var isOn: Int32 = 1
        setsockopt(
            socket, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        var limit = timeval(tv_sec: Self.secondsMax, tv_usec: 0)
        setsockopt(
            socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    static func request(
        _ method: String, _ path: String, credential: String? = nil, body: String = ""
    ) -> [UInt8] {
        var lines = ["\(method) \(path) HTTP/1.1", "Host: 127.0.0.1", "Accept: application/json"]
        if let credential { lines.append("Authorization: Bearer \(credential)") }
        if !body.isEmpty {
            lines += ["Content-Type: application/json", "Content-Length: \(body.utf8.count)"]
        }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8)
    }

    /// Sends a request and waits for the whole answer.
    /// - Returns: Its body.
    /// - Throws: ``Trouble`` for any status but 200.
    func exchange(_ request: [UInt8]) throws -> [UInt8] {
        try send(request)
        let header = try readHeader()
        let text = String(decoding: header, as: UTF8.self).lowercased()
        guard let length = Self.length(in: text) else {
            throw Trouble("an answer does not say how long it is: \(text)")
        }
        let body = try take(length)
        guard text.hasPrefix("http/1.1 200") else {
            throw Trouble("\(text)\(String(decoding: body, as: UTF8.self))")
        }
        return body
    }

    private static func length(in header: String) -> Int? {
        let name = "content-length:"
        let line = header.split(separator: "\r\n").first { $0.hasPrefix(name) }
        return line.flatMap { Int($0.dropFirst(name.count).trimmingCharacters(in: .whitespaces)) }
    }

    private func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { write(socket, $0.baseAddress, $0.count) }
            guard count > 0 else { throw Trouble.system("write") }
            sent += count
        }
    }

    private func readHeader() throws -> [UInt8] {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let range = buffer.firstRange(of: end) { return try take(range.upperBound) }
            try readMore()
        }
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while buffer.count < count { try readMore() }
        defer { buffer.removeSubrange(..<count) }
        return Array(buffer[..<count])
    }

    private func readMore() throws {
        try withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 1) { space in
            let count = read(socket, space.baseAddress, space.count)
            guard count > 0 else { throw Trouble.system("read") }
            buffer += space[..<count]
        }
    }
}
