// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Synchronization
import Ubiquity
import UbiquityCore
import UbiquitySimulation

/// A device of an account's own that only listens, not through a bad network, and so knows what the
/// server made durable. Of several listeners to a store one tells the checkers, and the others are
/// only compared with it in the end.
///
/// Shared state: what it knows of the store, guarded by a mutex: it is told on a thread of the
/// network's.
final class ServerListener: Sendable {
    private struct Known {
        var records: [Key: Record] = [:]
        var cursor: Cursor?
    }

    let name: String
    let store: StoreReference
    /// The account's name at the server.
    let account: String
    private let transport: HTTPTransport
    private let chronicle: Chronicle
    private let isWitness: Bool
    private let known = Mutex(Known())

    init(
        _ store: StoreReference, server: String, code: String, _ chronicle: Chronicle,
        name: String = "listener", isWitness: Bool = false
    ) async throws {
        (self.name, self.store, self.isWitness) = (name, store, isWitness)
        self.chronicle = chronicle
        let account = try await AccountClient.signIn(
            server: server, by: .code(code), deviceName: name)
        self.account = account.account
        transport = HTTPTransport(
            server: server, store: try StoreIdentifier(TortureDevice.store),
            credential: account.credential,
            device: DeviceID(account.device) ?? .unassigned)
    }

    /// Listens until its task is cancelled; the server may come and go.
    func run() async {
        while !Task.isCancelled {
            let cursor = known.withLock(\.cursor)
            do throws(LinkFailure) {
                try await transport.listen(since: cursor, within: IntakeLimits(nil)) { [self] in
                    take($0)
                }
            } catch {
                if case .cursorGone = error.kind {
                    chronicle.complain("\(store) does not know its own cursor: \(error.detail)")
                }
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    /// All that the server has now, asked for.
    func pull() async throws -> [Key: Record] {
        let changes = try await transport.pull(since: nil)
        return Dictionary(uniqueKeysWithValues: changes.records.map { ($0.key, $0) })
    }

    /// Whether it has heard of all that the server has; false too where that does not answer.
    func hasAll() async -> Bool {
        guard let changes = try? await transport.pull(since: nil),
            let last = Position(changes.cursor)
        else { return false }
        return known.withLock { known in
            let revision = known.cursor.flatMap(Position.init)?.revision ?? 0
            guard isWitness, revision == last.revision else { return revision >= last.revision }
            return known.records.filter { $0.value.content != .deleted }
                == Dictionary(uniqueKeysWithValues: changes.records.map { ($0.key, $0) })
        }
    }

    private func take(_ message: StreamMessage) {
        guard case .changes(let changes) = message, let position = Position(changes.cursor),
            let transaction = try? Transaction(changes.records)
        else { return }
        known.withLock { known in
            let before = known.records
            if changes.isWhole { known.records = [:] }
            for record in changes.records { known.records[record.key] = record }
            known.cursor = changes.cursor
            guard !isWitness else { return }
            chronicle.count(.commits)
            chronicle.note(.committed(commit(changes, transaction, position, before, known)))
        }
    }

    /// Whoever sent it, and in however many pushes: as if it had been one.
    private func commit(
        _ changes: ChangeSet, _ transaction: Transaction, _ position: Position,
        _ before: [Key: Record], _ known: Known
    ) -> Commit {
        Commit(
            store: store, before: before, after: known.records, position: position,
            push: Push([transaction]),
            results: [.committed(changes.records.map { _ in .applied })], writes: changes.records,
            // An event does not contain the server's time, which is that of this machine.
            limits: StoreLimits(), serverMilliseconds: Int64(Date().timeIntervalSince1970 * 1_000),
            newestCompacted: .zero, folded: nil)
    }
}
