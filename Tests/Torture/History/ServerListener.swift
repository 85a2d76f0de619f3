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
    let account: SignedInAccount
    private let identifier: StoreIdentifier
    private let chronicle: Chronicle
    /// The homes of devices, of which those in its account have the keys.
    private let homes: [String]
    private let isWitness: Bool
    private let known = Mutex(Known())
    /// The newest key of the account, if that is sealed.
    private let keyring = Mutex<Keyring?>(nil)

    init(
        _ store: StoreReference, server: String, code: String, _ chronicle: Chronicle,
        homes: [String], name: String = "listener", isWitness: Bool = false
    ) async throws {
        (self.name, self.store, self.isWitness) = (name, store, isWitness)
        (self.chronicle, self.homes) = (chronicle, homes)
        identifier = try StoreIdentifier(TortureDevice.store)
        account = try await AccountClient.signIn(
            server: server, by: .code(code), deviceName: name)
    }

    private var transport: HTTPTransport {
        HTTPTransport(
            identifier, of: account, generation: keyring.withLock(\.self)?.current ?? 0)
    }

    private var opener: Opener {
        Opener(sealer: keyring.withLock(\.self)?.sealer(of: identifier))
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
                switch error.kind {
                case .sealed: await takeKeys()
                // It was sealed.
                case .cursorGone where keyring.withLock(\.self) != nil:
                    known.withLock { $0.cursor = nil }
                case .cursorGone:
                    chronicle.complain("\(store) does not know its own cursor: \(error.detail)")
                default: break
                }
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Takes the account's newest key from a device that has it, or has proposed it.
    private func takeKeys() async {
        guard let mark = try? await AccountClient.sealing(account) else { return }
        for home in homes {
            guard let state = try? DeviceHome(path: home).load() else { continue }
            for keys in [state.keyring, state.proposal]
            where keys?.current == mark.generation && keys?.check == mark.check {
                return keyring.withLock { $0 = keys }
            }
        }
    }

    /// All that the server has now, asked for, and the keys of what it can read there.
    func pull() async throws -> (records: [Key: Record], readable: Set<Key>) {
        let records = try await pullSealed().records
        let generation = keyring.withLock(\.self)?.current ?? 0
        return (
            Dictionary(uniqueKeysWithValues: opener.opened(records).map { ($0.key, $0) }),
            Set(records.filter { !$0.isSealed(asOf: generation) }.map(\.key))
        )
    }

    /// Whether it has heard of all that the server has; false too where that does not answer.
    func hasAll() async -> Bool {
        guard let changes = try? await pullSealed(), let last = Position(changes.cursor)
        else { return false }
        return known.withLock { known in
            let revision = known.cursor.flatMap(Position.init)?.revision ?? 0
            guard isWitness, revision == last.revision else { return revision >= last.revision }
            return known.records.filter { $0.value.content != .deleted }
                == Dictionary(
                    uniqueKeysWithValues: opener.opened(changes.records).map { ($0.key, $0) })
        }
    }

    private func pullSealed() async throws(LinkFailure) -> ChangeSet {
        do throws(LinkFailure) { return try await transport.pull(since: nil) } catch {
            guard case .sealed = error.kind else { throw error }
            await takeKeys()
            return try await transport.pull(since: nil)
        }
    }

    private func take(_ message: StreamMessage) {
        guard case .changes(var changes) = message, let position = Position(changes.cursor)
        else { return }
        changes.records = opener.opened(changes.records)
        known.withLock { known in
            var before = known.records
            if changes.isWhole, known.cursor == nil, !before.isEmpty {
                before = noteSealed(before, changes, position)
            }
            if changes.isWhole { known.records = [:] }
            for record in changes.records { known.records[record.key] = record }
            known.cursor = changes.cursor
            if changes.isWhole { changes.records.removeAll { before[$0.key] == $0 } }
            guard !isWitness, let transaction = try? Transaction(changes.records) else { return }
            chronicle.count(.commits)
            chronicle.note(.committed(commit(changes, transaction, position, before, known)))
        }
    }

    /// The store was sealed since, perhaps more than once, and perhaps written after that: a value that
    /// is not there now may have been removed afterwards, and is none of the sealing.
    /// - Returns: What it had once it was sealed, as far as that can be known.
    private func noteSealed(
        _ before: [Key: Record], _ changes: ChangeSet, _ position: Position
    ) -> [Key: Record] {
        let present = Set(changes.records.map(\.key))
        let before = before.filter { key, record in
            record.content == .deleted || present.contains(key) || key.isRenamedBySealing
        }
        let after = before.filter { $1.content != .deleted && present.contains($0) }
        guard !isWitness else { return after }
        var commit = Commit(
            store: store, before: before, after: after, position: position, push: Push([]),
            results: [],
            writes: before.values.filter { after[$0.key] == nil && $0.content != .deleted }.map {
                Record(key: $0.key, content: .deleted, stamp: $0.stamp)
            }, limits: StoreLimits(), serverMilliseconds: Self.now, newestCompacted: .zero,
            folded: nil)
        (commit.isSealed, commit.isWhole) = (true, true)
        chronicle.count(.sealings)
        chronicle.note(.committed(commit))
        return after
    }

    /// Whoever sent it, and in however many pushes: as if it had been one.
    private func commit(
        _ changes: ChangeSet, _ transaction: Transaction, _ position: Position,
        _ before: [Key: Record], _ known: Known
    ) -> Commit {
        var commit = Commit(
            store: store, before: before, after: known.records, position: position,
            push: Push([transaction]),
            results: [.committed(changes.records.map { _ in .applied })], writes: changes.records,
            // An event does not contain the server's time, which is that of this machine.
            limits: StoreLimits(), serverMilliseconds: Self.now, newestCompacted: .zero,
            folded: nil)
        commit.isSealed = keyring.withLock(\.self) != nil
        return commit
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }
}
