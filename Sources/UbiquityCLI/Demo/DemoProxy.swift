// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Synchronization

/// A load balancer in its plainest form: each connection goes to the first server that accepts it,
/// and ends with it. A thread for each direction, because there are few.
///
/// State: the numbers of connections that each server accepted, guarded by the lock.
final class DemoProxy: Sendable {
    let port: Int
    private let listener: Int32
    private let servers: [ServerProcess]
    private let accepted: Mutex<[Int]>

    /// - Parameter servers: The first is preferred.
    init(to servers: [ServerProcess]) throws {
        self.servers = servers
        accepted = Mutex(servers.map { _ in 0 })
        (listener, port) = try Self.newListener()
        Thread { [self] in acceptAll() }.start()
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// The number of connections that a server accepted so far.
    func connections(to server: Int) -> Int { accepted.withLock { $0[server] } }

    func close() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func acceptAll() {
        while case let client = accept(listener, nil, nil), client >= 0 {
            Thread { [self] in serve(client) }.start()
        }
        Foundation.close(listener)
    }

    private func serve(_ client: Int32) {
        defer { Foundation.close(client) }
        for (index, server) in servers.enumerated() {
            guard let connection = Self.connection(to: server.port) else { continue }
            accepted.withLock { $0[index] += 1 }
            for end in [client, connection] { Self.sendAtOnce(end) }
            let isDone = DispatchSemaphore(value: 0)
            Thread {
                Self.forward(from: connection, to: client)
                isDone.signal()
            }.start()
            Self.forward(from: client, to: connection)
            isDone.wait()
            Foundation.close(connection)
            return
        }
    }

    /// Without it, a request's body waits until the server has acknowledged its head.
    private static func sendAtOnce(_ socket: Int32) {
        var isOn: Int32 = 1
        let length = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, length)
    }

    /// Until one side ends, which ends the other one too.
    private static func forward(from source: Int32, to target: Int32) {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = read(source, &buffer, buffer.count), count > 0 {
            var sent = 0
            while sent < count {
                let part = buffer.withUnsafeBytes { bytes in
                    write(target, bytes.baseAddress! + sent, count - sent)
                }
                guard part > 0 else { break }
                sent += part
            }
            guard sent == count else { break }
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }

    private static func newListener() throws -> (Int32, port: Int) {
        let listener = try newSocket()
        var address = address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length) == 0 && Foundation.listen(listener, 64) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        guard isBound else { throw Trouble.system("the proxy's port") }
        return (listener, Int(UInt16(bigEndian: address.sin_port)))
    }

    private static func connection(to port: Int) -> Int32? {
        guard let connection = try? newSocket() else { return nil }
        var address = address(port: port)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(connection, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else {
            Foundation.close(connection)
            return nil
        }
        return connection
    }

    private static func newSocket() throws -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let file = socket(AF_INET, kind, 0)
        guard file >= 0 else { throw Trouble.system("the proxy's socket") }
        return file
    }

    private static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        return address
    }
}
