// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The first two steps towards a server, kept separate to tell which of them fails.
enum Reachability {
    private static let secondsMax: Int32 = 5

    /// The addresses of a name.
    /// - Throws: ``DeviceFacts/LocalFailure`` with the system's message.
    static func addresses(
        of host: String, port: Int
    ) throws(DeviceFacts.LocalFailure) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(streamType)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, "\(port)", &hints, &list)
        guard code == 0 else {
            throw DeviceFacts.LocalFailure(
                sentence: String(cString: gai_strerror(code)).lowercased())
        }
        defer { freeaddrinfo(list) }
        return sequence(first: list, next: { $0?.pointee.ai_next }).prefix { $0 != nil }
            .compactMap { $0.flatMap(SocketAddress.init) }
    }

    /// Connects to the first address that accepts the connection, and closes it.
    /// - Throws: ``DeviceFacts/LocalFailure`` with the system's message.
    static func connect(to addresses: [SocketAddress]) throws(DeviceFacts.LocalFailure) {
        var reason = "it has no address"
        for address in addresses {
            guard let code = connectFailure(address) else { return }
            reason = String(cString: strerror(code)).lowercased()
        }
        throw DeviceFacts.LocalFailure(sentence: reason)
    }

    private static func connectFailure(_ address: SocketAddress) -> Int32? {
        let file = socket(address.family, streamType, 0)
        guard file >= 0 else { return errno }
        defer { close(file) }
        _ = fcntl(file, F_SETFL, O_NONBLOCK)
        let code = address.withBytes { Foundation.connect(file, $0, $1) }
        if code == 0 { return nil }
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

/// An address in the form of the system's calls.
struct SocketAddress {
    let family: Int32
    private let bytes: [UInt8]

    init?(_ info: UnsafeMutablePointer<addrinfo>) {
        guard let address = info.pointee.ai_addr else { return nil }
        family = info.pointee.ai_family
        bytes = Array(UnsafeRawBufferPointer(start: address, count: Int(info.pointee.ai_addrlen)))
    }

    func withBytes<Result>(
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        // `sockaddr_storage` has the size and alignment for every address.
        withUnsafeTemporaryAllocation(of: sockaddr_storage.self, capacity: 1) { storage in
            let raw = UnsafeMutableRawBufferPointer(storage)
            raw.initializeMemory(as: UInt8.self, repeating: 0)
            raw.copyBytes(from: bytes)
            return raw.baseAddress!.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(UnsafePointer($0), socklen_t(bytes.count))
            }
        }
    }
}
