// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
internal import Foundation
internal import ProcessHarness
internal import Synchronization

/// The processes that are connected to a server, as the kernel sees it.
enum ServerConnections {
    /// - Returns: The processes that have an established connection to this machine's port.
    static func holders(of port: Int, among processes: [Int32]) throws -> Set<Int32> {
        let sockets = try sockets(to: port)
        return Set(processes.filter { !files(of: $0).isDisjoint(with: sockets) })
    }

    /// As links to open files name them.
    private static func sockets(to port: Int) throws -> Set<String> {
        let server = "0100007F:" + String(format: "%04X", port)
        // Of a file of the kernel, which has no size, `String(contentsOf:)` takes the first page.
        let table = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/net/tcp"))
            .readToEnd()
        let rows = String(decoding: table ?? Data(), as: UTF8.self).split(separator: "\n")
            .map { $0.split(separator: " ") }
        // Number, own address, the other's, state (1: established), and the inode as the tenth.
        return Set(
            rows.filter { $0.count > 9 && $0[2] == server && $0[3] == "01" }
                .map { "socket:[\($0[9])]" })
    }

    /// None of a process that is gone.
    private static func files(of process: Int32) -> Set<String> {
        let folder = "/proc/\(process)/fd"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return Set(
            names.compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
            })
    }
}

/// Looks again and again which of several processes are connected to a server.
///
/// Shared state, guarded by a mutex: the test says who counts while the census is taken.
final class ConnectionCounter: Sendable {
    private struct State {
        var processes: [Int32]
        /// The sets of processes that were found connected at the same time.
        var crowds: Set<Set<Int32>> = []
    }

    private let port: Int
    private let state: Mutex<State>

    init(port: Int, processes: [Int32]) {
        self.port = port
        state = Mutex(State(processes: processes))
    }

    var crowds: Set<Set<Int32>> { state.withLock(\.crowds) }

    /// Until it is cancelled.
    @concurrent func run() async throws {
        while !Task.isCancelled {
            _ = try holders()
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    /// A process that ends may keep a connection until it has.
    func leaveOut(_ process: Int32) { state.withLock { $0.processes.removeAll { $0 == process } } }

    func holders() throws -> Set<Int32> {
        try state.withLock { state in
            let holders = try ServerConnections.holders(of: port, among: state.processes)
            if holders.count > 1 { state.crowds.insert(holders) }
            return holders
        }
    }
}
#endif
