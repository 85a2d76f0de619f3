// SPDX-License-Identifier: Apache-2.0

#if os(Linux)

internal import ProcessHarness
internal import Synchronization

/// Looks again and again which of several processes are connected to a server.
///
/// Shared state, guarded by a mutex: the test says who counts while the census is taken.
final class ConnectionCounter: Sendable {
    private struct State {
        var processes: [Int32]
        /// Those that were found connected at the same time.
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
