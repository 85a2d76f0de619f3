// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness

/// Accepts every connection, and never answers.
final class SilentServer: Sendable {
    private let socket: Int32

    /// - Throws: ``Trouble`` if the port cannot be had.
    init(port: Int) throws {
        #if canImport(Darwin)
        let stream = SOCK_STREAM
        #else
        let stream = Int32(SOCK_STREAM.rawValue)
        #endif
        socket = Foundation.socket(AF_INET, stream, 0)
        var yes: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, size) == 0 }
        }
        // The system accepts for a listener that does nothing.
        guard isBound, listen(socket, 64) == 0 else {
            throw Trouble("port \(port): \(String(cString: strerror(errno)))")
        }
    }

    deinit { close(socket) }
}
