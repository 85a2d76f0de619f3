// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// The positions of stores that were read or written lately, so that a device that is up to date
/// need not be told so by the disk.
///
/// A position is noted after its commit, before anyone is notified of it. A position that a reader
/// found is only noted if no later one is known, and nothing was removed since the reader began. A
/// store is removed when it is compacted, and everything is when an account is erased, or when
/// another process is seen to have written.
///
/// State: `table`, guarded by its lock, because readers and the writer use it.
final class KnownPositions: Sendable {
    struct Head: Hashable, Sendable {
        var position: Position
        var horizon: HybridTimestamp
        /// As ``UbiquityCore/StoreState/contentGeneration``.
        var generation: UInt32?

        init(_ state: StoreState) {
            (position, horizon) = (state.lineage.position, state.horizon)
            generation = state.contentGeneration
        }
    }

    private let table: Mutex<RecentTable<StoreReference, Head>>

    init(bytesMax: Int = 16 << 20) { table = Mutex(RecentTable(bytesMax: bytesMax)) }

    /// Nil if the store is not known.
    func head(of store: StoreReference) -> Head? { table.withLock { $0.value(store) } }

    /// Changes when something is removed.
    var generation: Int { table.withLock { $0.generation } }

    /// Notes what a commit left.
    func note(_ state: StoreState, of store: StoreReference) {
        table.withLock { $0.set(store, Head(state), bytes: 0) }
    }

    /// Notes what a reader found.
    /// - Parameter generation: As it was before the reader began.
    func note(_ state: StoreState, of store: StoreReference, since generation: Int) {
        table.withLock { table in
            let known = table.value(store)?.position.revision ?? 0
            guard table.generation == generation, known <= state.lineage.revision else { return }
            table.set(store, Head(state), bytes: 0)
        }
    }

    func forget(_ store: StoreReference) { table.withLock { $0.remove(store) } }

    func forgetAll() { table.withLock { $0.removeAll() } }
}
