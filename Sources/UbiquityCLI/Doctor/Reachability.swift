// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The first two steps towards a server, kept separate to tell which of them fails.
enum Reachability {
    private static let secondsMax: Int32 = 5

    /// Resolves a name, connects to the first of its addresses that accepts the connection, and closes
    /// it.
    /// - Returns: Failures with the system's message; nil for a connection that was not tried.
    static func contact(
        _ host: String, port: Int
    ) -> (name: DeviceFacts.Outcome, connection: DeviceFacts.Outcome?) {
        var hints = addrinfo()
        hints.ai_socktype = streamType
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, "\(port)", &hints, &list)
        guard code == 0 else {
            return (.failure(String(cString: gai_strerror(code)).lowercased()), nil)
        }
        defer { freeaddrinfo(list) }
        var (reason, next) = ("it has no address", list)
        while let address = next?.pointee {
            guard let code = connectFailure(address) else { return (.success, .success) }
            reason = String(cString: strerror(code)).lowercased()
            next = address.ai_next
        }
        return (.success, .failure(reason))
    }

    private static func connectFailure(_ address: addrinfo) -> Int32? {
        let file = socket(address.ai_family, streamType, 0)
        guard file >= 0 else { return errno }
        defer { close(file) }
        _ = fcntl(file, F_SETFL, O_NONBLOCK)
        if connect(file, address.ai_addr, address.ai_addrlen) == 0 { return nil }
        guard errno == EINPROGRESS else { return errno }
        var wait = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
        guard poll(&wait, 1, secondsMax * 1_000) > 0 else { return ETIMEDOUT }
        var failure: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(file, SOL_SOCKET, SO_ERROR, &failure, &size)
        return failure == 0 ? nil : failure
    }

    #if canImport(Glibc)
    private static let streamType = Int32(SOCK_STREAM.rawValue)
    #else
    private static let streamType = SOCK_STREAM
    #endif
}
