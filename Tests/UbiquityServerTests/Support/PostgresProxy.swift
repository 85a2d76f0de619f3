// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness
internal import Synchronization

/// The way to a PostgreSQL server, which can be cut at the worst of moments: as a transaction commits.
///
/// State: the planned cuts and the number of flights, guarded by mutexes: tests plan cuts and read the
/// number, and the threads of the connections make and count them.
final class PostgresProxy: Sendable {
    enum Cut: CaseIterable {
        /// The server never hears of the commit.
        case beforeCommit
        /// The server has committed, and nobody hears of it.
        case afterCommit
    }

    let port: Int
    private let listener: Int32
    private let serverPort: Int
    private let cuts = Mutex<[Cut]>([])
    private let flightsCount = Mutex(0)

    init(to serverPort: Int) throws {
        self.serverPort = serverPort
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port: UInt16? = withUnsafeMutablePointer(to: &address) { [listener] address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(listener, address, length) == 0, listen(listener, 64) == 0,
                    getsockname(listener, address, &length) == 0
                else { return nil }
                return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    UInt16(bigEndian: $0.pointee.sin_port)
                }
            }
        }
        guard let port else { throw Trouble.system("no proxy") }
        self.port = Int(port)
        Thread.detachNewThread { [listener, weak self] in
            while case let client = accept(listener, nil, nil), client >= 0 {
                guard let self else { break }
                pass(client)
            }
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    /// Cuts the next commits, each in turn.
    func cut(_ cuts: Cut...) { self.cuts.withLock { $0 += cuts } }

    /// The number of planned cuts that were not made yet.
    var planned: Int { cuts.withLock(\.count) }

    /// The number of flights that were sent to the server so far.
    var flights: Int { flightsCount.withLock(\.self) }

    private static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return address
    }

    // MARK: - A connection

    private func pass(_ client: Int32) {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.address(port: serverPort)
        let isConnected = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        // Messages are passed one at a time, and none is to wait for the other side's next.
        var isOn: Int32 = 1
        for end in [client, server] {
            setsockopt(
                end, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        }
        let line = PostgresLine(client: client, server: server)
        guard isConnected else { return line.cut() }
        Thread.detachNewThread { [self] in
            line.passRequests(
                onFlight: { flightsCount.withLock { $0 += 1 } },
                cut: { cuts.withLock { $0.isEmpty ? nil : $0.removeFirst() } })
        }
        Thread.detachNewThread { line.passAnswers() }
    }
}

/// One connection through a proxy, by two threads.
///
/// State: whether answers are swallowed, guarded by a mutex: the thread of the requests decides it
/// before the server can answer.
private final class PostgresLine: Sendable {
    private let client: Int32
    private let server: Int32
    private let swallows = Mutex(false)

    init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }

    /// The descriptors are closed when both threads have let go of the connection.
    deinit {
        close(client)
        close(server)
    }

    func cut() {
        for end in [client, server] { shutdown(end, Int32(SHUT_RDWR)) }
    }

    /// - Parameters:
    ///   - onFlight: Called before the end of each flight is passed on.
    ///   - cut: The cut to make at a commit; nil for none.
    func passRequests(onFlight: () -> Void, cut plannedCut: () -> PostgresProxy.Cut?) {
        defer { cut() }
        // The first message has no type.
        guard let start = Self.message(from: client, hasType: false),
            Self.write(start, to: server)
        else { return }
        var commits: Set<[UInt8]> = []
        var flight: [UInt8] = []
        var isCommit = false
        while let message = Self.message(from: client, hasType: true) {
            flight += message
            let texts = message.dropFirst(5).split(
                separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
            switch (message[0], texts.count) {
            case (UInt8(ascii: "P"), 2...) where texts[1].elementsEqual("COMMIT".utf8):
                commits.insert(Array(texts[0]))
            case (UInt8(ascii: "B"), 2...) where commits.contains(Array(texts[1])):
                isCommit = true
            default: break
            }
            // What comes before the end of a flight may wait for it, except a password.
            guard "SHQXp".utf8.contains(message[0])
            else { continue }
            if message[0] == UInt8(ascii: "S") { onFlight() }
            if isCommit, message[0] == UInt8(ascii: "S"), let planned = plannedCut() {
                guard planned == .afterCommit else { return }
                swallows.withLock { $0 = true }
            }
            guard Self.write(flight, to: server) else { return }
            flight = []
            if message[0] == UInt8(ascii: "S") { isCommit = false }
        }
    }

    func passAnswers() {
        defer { cut() }
        while let message = Self.message(from: server, hasType: true) {
            if swallows.withLock({ $0 }) {
                // Ready for the next: it has committed.
                if message[0] == UInt8(ascii: "Z") { return }
            } else if !Self.write(message, to: client) {
                return
            }
        }
    }

    private static func message(from end: Int32, hasType: Bool) -> [UInt8]? {
        let headCount = hasType ? 5 : 4
        guard let head = bytes(headCount, from: end) else { return nil }
        let length = head.suffix(4).reduce(0) { $0 << 8 | Int($1) }
        guard (4...(1 << 30)).contains(length), let rest = bytes(length - 4, from: end) else {
            return nil
        }
        return head + rest
    }

    private static func bytes(_ count: Int, from end: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = bytes.withUnsafeMutableBytes {
                recv(end, $0.baseAddress! + done, count - done, 0)
            }
            guard got > 0 else { return nil }
            done += got
        }
        return bytes
    }

    private static func write(_ bytes: [UInt8], to end: Int32) -> Bool {
        var done = 0
        while done < bytes.count {
            let sent = bytes.withUnsafeBytes {
                send(end, $0.baseAddress! + done, bytes.count - done, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { return false }
            done += sent
        }
        return true
    }
}
