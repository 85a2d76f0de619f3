// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// A server whose connections do byte by byte what a test says, each on a thread of its own.
///
/// Shared state: `accepted` and `heads`, guarded by their mutex.
final class RawServer: Sendable {
    /// One connection. Calls block.
    struct Connection: Sendable {
        let socket: Int32
        /// From 1, in the order of their arrival.
        let number: Int
        fileprivate let server: RawServer

        /// The head of the next request, with its body's bytes taken and forgotten; nil if there
        /// is none.
        func request() -> String? {
            guard let head = head() else { return nil }
            let length = head.lowercased().components(separatedBy: "content-length: ").dropFirst()
                .first.flatMap { Int($0.prefix { $0.isNumber }) }
            var left = length ?? 0
            while left > 0 {
                let count = read(min(left, 65_536)).count
                guard count > 0 else { return nil }
                left -= count
            }
            return head
        }

        /// The head alone.
        func head() -> String? {
            var bytes: [UInt8] = []
            while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                let next = read(1)
                guard !next.isEmpty else { return nil }
                bytes += next
            }
            let head = String(decoding: bytes, as: UTF8.self)
            server.note(head)
            return head
        }

        /// Up to so many bytes; none at the end.
        func read(_ count: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: count)
            let result = recv(socket, &bytes, count, 0)
            return Array(bytes.prefix(max(result, 0)))
        }

        /// Returns: False if the other side is gone.
        @discardableResult
        func write(_ text: String) -> Bool {
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }

        /// An answer with a length.
        func answer(_ body: String = "ok", status: String = "200 OK") {
            write("HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        }

        /// Waits until the other side has closed the connection.
        func drain() { while !read(65_536).isEmpty {} }

        /// Ends the connection as a broken one.
        func reset() {
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(
                socket, SOL_SOCKET, SO_LINGER, &linger,
                socklen_t(MemoryLayout.size(ofValue: linger)))
        }
    }

    private struct State {
        var accepted = 0
        var heads: [String] = []
    }

    private let listening: Int32
    let port: UInt16
    private let state = Mutex(State())

    /// - Parameters:
    ///   - path: Of a Unix domain socket, in place of a port.
    ///   - receiveBufferBytes: Small, for a connection that stops soon if the server does not read.
    ///   - serve: Called for each connection, which is closed when it returns.
    init(
        path: String? = nil, receiveBufferBytes: Int32? = nil,
        _ serve: @escaping @Sendable (Connection) -> Void
    ) throws {
        let stream = Int32(SOCK_STREAM.rawValue)
        listening = socket(path == nil ? AF_INET : AF_UNIX, stream, 0)
        if var bytes = receiveBufferBytes {
            setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &bytes, 4)
        }
        if let path {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            try Self.bind(listening, &address)
            port = 0
        } else {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            try Self.bind(listening, &address)
            Self.readName(of: listening, &address)
            port = UInt16(bigEndian: address.sin_port)
        }
        guard listen(listening, 256) == 0 else { throw POSIXError(.EADDRINUSE) }
        Thread.detachNewThread { [listening, weak self] in
            while case let socket = accept(listening, nil, nil), socket >= 0 {
                guard let self else { break }
                let number = state.withLock { state in
                    state.accepted += 1
                    return state.accepted
                }
                let connection = Connection(socket: socket, number: number, server: self)
                Thread.detachNewThread {
                    serve(connection)
                    Glibc.close(socket)
                }
            }
            Glibc.close(listening)
        }
    }

    deinit { shutdown(listening, Int32(SHUT_RDWR)) }

    private static func bind<Address>(_ socket: Int32, _ address: inout Address) throws {
        let size = socklen_t(MemoryLayout<Address>.size)
        let code = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(socket, $0, size) }
        }
        guard code == 0 else { throw POSIXError(.EADDRINUSE) }
    }

    private static func readName(of socket: Int32, _ address: inout sockaddr_in) {
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
        }
    }

    var url: String { "http://127.0.0.1:\(port)" }
    var accepted: Int { state.withLock { $0.accepted } }
    /// The heads of the requests so far.
    var heads: [String] { state.withLock { $0.heads } }

    private func note(_ head: String) { state.withLock { $0.heads.append(head) } }
}
