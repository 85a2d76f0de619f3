// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore
internal import UbiquityWire

/// The file of an account, made in slices: what each adds is encoded record by record, and only the
/// rows of one store, or of one history, are in memory.
///
/// Each store is read at one moment, later than the store before it. Values are as an app without
/// merge rules of its own sees them, made of all of a key's parts.
struct AccountExport: Sendable {
    private enum Step {
        case begin
        case store(StoreIdentifier)
        case history(StoreIdentifier)
        case endStore
        case end
    }

    private enum Item {
        /// The records of a key and its parts.
        case key([StoredRecord])
        case version(StoredVersion)

        var bytes: Int {
            switch self {
            case .key(let records): records.reduce(0) { $0 + $1.bytes }
            case .version(let version): version.bytes
            }
        }
    }

    private let storage: any ServerStorage
    private let account: Account
    private let history: HistoryRule?
    private let now: Int64
    private let permit: AccountShares.Permit
    private var writer = AccountFileWriter()
    /// Both are in reverse order.
    private var steps: [Step] = [.begin]
    private var waiting: [Item] = []

    /// - Parameters:
    ///   - history: The rule for the stores' histories, which the account's own limits change;
    ///     nil to leave them out.
    ///   - permit: Is charged with the rows, until they are encoded.
    init(
        of account: Account, storage: any ServerStorage, history: HistoryRule?, now: Int64,
        permit: AccountShares.Permit
    ) {
        self.storage = storage
        self.account = account
        self.history = history?.of(account.limits)
        self.now = now
        self.permit = permit
    }

    /// Whether the next slice begins with reading rows, which take memory.
    var readsNext: Bool { waiting.isEmpty }

    /// The bytes of the next slice; nil after the last one. Blocks for the disk.
    /// - Throws: ``StorageError/noSuchAccount`` if the account was removed meanwhile. The slices so
    ///   far are not a whole file then.
    mutating func next() throws(StorageError) -> [UInt8]? {
        var slice: [UInt8] = []
        if waiting.isEmpty {
            guard let step = steps.popLast() else { return nil }
            slice = try take(step)
        }
        var encoded = 0
        while encoded < AnswerPieces.sliceBytes, let item = waiting.popLast() {
            encoded += item.bytes
            slice += try encode(item)
            permit.give(item.bytes)
        }
        return slice
    }

    private mutating func take(_ step: Step) throws(StorageError) -> [UInt8] {
        switch step {
        case .begin: return try begin()
        case .store(let identifier):
            wait(for: try keys(of: reference(identifier)).map(Item.key))
            return writer.beginStore(identifier)
        case .history(let identifier):
            wait(for: try versions(of: reference(identifier)).map(Item.version))
            return writer.beginHistory()
        case .endStore: return writer.endStore()
        case .end:
            guard try storage.account(account.id) != nil else { throw .noSuchAccount }
            return writer.end()
        }
    }

    private mutating func begin() throws(StorageError) -> [UInt8] {
        steps = [.end]
        for store in try storage.stores(of: account.id).reversed() {
            steps.append(.endStore)
            if history != nil { steps.append(.history(store.identifier)) }
            steps.append(.store(store.identifier))
        }
        return writer.begin(
            WireAccount(account, try storage.devices(of: account.id)), madeMilliseconds: now)
    }

    private func reference(_ identifier: StoreIdentifier) -> StoreReference {
        StoreReference(account: account.id, identifier: identifier)
    }

    private mutating func wait(for items: [Item]) {
        permit.note(items.reduce(0) { $0 + $1.bytes })
        waiting = items.reversed()
    }

    /// The rows of a store, those of a key together, in the order of the keys.
    private func keys(of store: StoreReference) throws(StorageError) -> [[StoredRecord]] {
        guard case .changes(let records, _, _, _) = try storage.read(store, since: nil) else {
            return []
        }
        var keys: [Key: [StoredRecord]] = [:]
        for record in records {
            let key: Key
            do { key = try record.key.withUnsafeBytes { try Key(bytes: $0) } } catch {
                throw .unreadable
            }
            keys[key.whole, default: []].append(record)
        }
        return keys.sorted { $0.key < $1.key }.map(\.value)
    }

    private func versions(of store: StoreReference) throws(StorageError) -> [StoredVersion] {
        try HistoryRoutes.read(storage, store, nil, permit) { _, lines in
            history?.page(of: lines, after: nil, max: .max, bytesMax: .max).chosen ?? []
        }
    }

    private mutating func encode(_ item: Item) throws(StorageError) -> [UInt8] {
        switch item {
        case .version(let version): return writer.version(try version.version())
        case .key(let rows):
            let records = try rows.map { row throws(StorageError) in try row.record() }
            var bytes: [UInt8] = []
            for (key, value) in records.visibleValues { bytes += writer.record(key, value) }
            return bytes
        }
    }
}
