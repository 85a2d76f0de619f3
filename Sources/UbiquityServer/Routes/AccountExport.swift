// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore
internal import UbiquityWire

/// The file of an account, made in slices. Nothing of a store stays in memory from one to the next.
///
/// Each store is of one moment, later than the store before it, see ``StoreSlices``. Values are as an
/// app without merge rules of its own sees them, made of all of a key's parts.
struct AccountExport: Sendable {
    private enum Step {
        case begin
        case beginStore(StoreReference)
        case records(StoreReference, StoreSlices)
        case beginHistory
        case versions(StoreReference, after: HistoryRule.Place?)
        case endStore
        case end

        var isLong: Bool {
            switch self {
            case .begin, .records, .versions: true
            case .beginStore, .beginHistory, .endStore, .end: false
            }
        }
    }

    private let storage: any AccountStorage & StoreStorage & HistoryStorage
    private let account: Account
    private let history: HistoryRule?
    private let now: Int64
    private let permit: AccountShares.Permit
    private var writer = AccountFileWriter()
    /// In reverse order.
    private var steps: [Step] = [.begin]

    /// - Parameters:
    ///   - history: The rule for the stores' histories, which the account's own limits change;
    ///     nil to leave them out.
    ///   - permit: Is charged with the rows, until they are encoded.
    init(
        of account: Account, storage: any AccountStorage & StoreStorage & HistoryStorage,
        history: HistoryRule?, now: Int64,
        permit: AccountShares.Permit
    ) {
        self.storage = storage
        self.account = account
        self.history = history?.of(account.limits)
        self.now = now
        self.permit = permit
    }

    /// The bytes of the next slice; nil after the last one. Blocks for the disk.
    /// - Throws: ``StorageError/noSuchAccount`` if the account was removed meanwhile. The slices so
    ///   far are not a whole file then.
    mutating func next() throws(StorageError) -> [UInt8]? {
        var slice: [UInt8] = []
        while let step = steps.popLast() {
            slice += try take(step)
            if step.isLong, !slice.isEmpty { break }
        }
        return slice.isEmpty ? nil : slice
    }

    private mutating func take(_ step: Step) throws(StorageError) -> [UInt8] {
        switch step {
        case .begin: return try begin()
        case .beginStore(let store): return writer.beginStore(store.identifier)
        case .records(let store, let slices): return try records(of: store, slices)
        case .beginHistory: return writer.beginHistory()
        case .versions(let store, let place): return try versions(of: store, after: place)
        case .endStore: return writer.endStore()
        case .end:
            try checkAccount()
            return writer.end()
        }
    }

    private func checkAccount() throws(StorageError) {
        guard try storage.account(account.id) != nil else { throw .noSuchAccount }
    }

    private mutating func begin() throws(StorageError) -> [UInt8] {
        steps = [.end]
        for summary in try storage.stores(of: account.id).reversed() {
            let store = StoreReference(account: account.id, identifier: summary.identifier)
            steps.append(.endStore)
            if history != nil { steps += [.versions(store, after: nil), .beginHistory] }
            let slices = StoreSlices(bytesMin: AnswerPieces.sliceBytes)
            steps += [.records(store, slices), .beginStore(store)]
        }
        return writer.begin(
            WireAccount(account, try storage.devices(of: account.id)), madeMilliseconds: now)
    }

    private mutating func records(
        of store: StoreReference, _ slices: StoreSlices
    ) throws(StorageError) -> [UInt8] {
        var (after, items) = (slices, [StoreSlices.Item]?.none)
        let rows = try HistoryRoutes.read(storage, store, nil, permit, currentOnly: true) {
            state, lines in
            after = slices
            items = after.next(lines, in: state)
            return items?.flatMap(\.places) ?? []
        }
        guard let items else {
            try checkAccount()
            throw .failed("a store was replaced while it was being exported")
        }
        if !after.isOver { steps.append(.records(store, after)) }
        let held = charge(rows)
        defer { permit.give(held) }
        var (bytes, rest) = ([UInt8](), rows[...])
        for item in items {
            let own = rest.prefix(item.places.count)
            rest = rest.dropFirst(own.count)
            let records = try own.map { row throws(StorageError) in try row.record() }
            let value = records.visibleValues[item.key]
            if value == nil, slices.isFirstRound { continue }
            bytes += writer.record(item.key, value)
        }
        return bytes
    }

    private mutating func versions(
        of store: StoreReference, after place: HistoryRule.Place?
    ) throws(StorageError) -> [UInt8] {
        guard let history else { return [] }
        var next: HistoryRule.Place?
        let rows = try HistoryRoutes.read(storage, store, nil, permit) { _, lines in
            let bytesMax = StoreSlices.bytesMax(of: lines, min: AnswerPieces.sliceBytes)
            let page = history.page(of: lines, after: place, max: .max, bytesMax: bytesMax)
            next = page.next
            return page.chosen
        }
        if let next { steps.append(.versions(store, after: next)) }
        let held = charge(rows)
        defer { permit.give(held) }
        var bytes: [UInt8] = []
        for row in rows { bytes += writer.version(try row.version()) }
        return bytes
    }

    /// - Returns: The bytes of the rows, which are to be given back when these are encoded.
    private func charge(_ rows: [StoredVersion]) -> Int {
        let bytes = rows.reduce(0) { $0 + $1.bytes }
        permit.note(bytes)
        return bytes
    }
}
