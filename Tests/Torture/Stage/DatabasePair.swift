// SPDX-License-Identifier: Apache-2.0

import Dispatch
import ProcessHarness
import Synchronization

/// A PostgreSQL primary and its synchronous standby, which take turns.
///
/// Shared state, guarded by mutexes: which of the two is the primary, and whether the other one is
/// back; one task changes it, and others ask.
final class DatabasePair: Sendable {
    static let name = "torture"

    private let servers: [PostgresServer]
    private let primaryIndex = Mutex(0)
    private let isFormerBack = Mutex(false)

    /// - Throws: ``Trouble``.
    init() throws {
        let primary = try PostgresServer.started(settings: ["max_connections": "200"])
        try primary.query("CREATE DATABASE \(Self.name)")
        // Both wait for the other one, whichever of them is the primary.
        try primary.set(["synchronous_standby_names": "*"])
        servers = [primary, try primary.newStandby()]
        primary.reload()
    }

    var ports: [Int] { servers.map(\.port) }

    /// The address of whichever is the primary.
    var url: String { PostgresServer.url(ports: ports, Self.name) }

    private var primary: PostgresServer { servers[primaryIndex.withLock { $0 }] }
    private var other: PostgresServer { servers[1 - primaryIndex.withLock { $0 }] }

    func query(_ sql: String) throws -> String { try primary.query(sql, in: Self.name) }

    // MARK: - Faults

    func killPrimary() async throws { try await blocking { $0.primary.kill() } }

    /// Starts the killed primary again.
    func restartPrimary() async throws { try await blocking { try $0.primary.start() } }

    /// Makes the standby the primary.
    func promote() async throws {
        try await blocking { pair in
            try pair.other.promote()
            pair.primaryIndex.withLock { $0 = 1 - $0 }
        }
    }

    /// Starts the killed primary as it was, which takes writes beside its successor: it waits for no
    /// standby.
    func restartFormer() async throws {
        try await blocking { pair in
            try pair.other.set(["synchronous_standby_names": ""])
            try pair.other.start()
        }
    }

    /// Kills it again.
    func endFormer() async throws { try await blocking { $0.other.kill() } }

    /// Whether a killed primary is back, or soon will be, beside its successor.
    var hasFormer: Bool {
        get { isFormerBack.withLock(\.self) }
        set { isFormerBack.withLock { $0 = newValue } }
    }

    /// Has the killed primary become the standby of its successor.
    func rebuildStandby() async throws {
        try await blocking { try $0.other.become(standbyOf: $0.primary) }
    }

    func freezePrimary(_ isFrozen: Bool) async throws {
        try await blocking { $0.primary.freeze(isFrozen) }
    }

    /// On a thread that may wait: those of tasks are few.
    private func blocking(
        _ body: @escaping @Sendable (DatabasePair) throws -> Void
    ) async throws {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { [self] in
                continuation.resume(with: Result { try body(self) })
            }
        }
    }
}
