// SPDX-License-Identifier: Apache-2.0

internal import UbiquityArchive
internal import UbiquityCore

/// An account's archive, made piece by piece with one store at a time in memory.
///
/// Each store is read at one moment, later than the store before it. Values are as an app without
/// merge rules of its own sees them, made of all of a key's parts.
struct AccountExport: Sendable {
    private let storage: any ServerStorage
    private let account: AccountID
    private var writer: ArchiveWriter
    private var stores: ArraySlice<StoreIdentifier>
    private let history: HistoryRule?
    private var isEnded = false

    /// Blocks for the disk.
    /// - Parameter history: The rule for the stores' histories, which the account's own limits change;
    ///   nil to leave them out.
    init(
        of account: Account, storage: any ServerStorage, history: HistoryRule?, now: Int64
    ) throws(StorageError) {
        self.storage = storage
        self.history = history?.of(account.limits)
        self.account = account.id
        stores = try storage.stores(of: account.id).map(\.identifier)[...]
        writer = ArchiveWriter(
            made: now, accountID: account.id.string, accountName: account.name.string,
            devices: try storage.devices(of: account.id).map(ArchiveManifest.Device.init))
    }

    /// The next piece of the archive; nil after the last one. Blocks for the disk.
    /// - Throws: ``StorageError/noSuchAccount`` if the account was removed meanwhile. The pieces so
    ///   far are not a valid archive then.
    mutating func next() throws(StorageError) -> [UInt8]? {
        guard !isEnded else { return nil }
        if let identifier = stores.popFirst() {
            let values = try values(of: identifier)
            guard let history else { return writer.store(identifier, values) }
            return writer.history(of: identifier, try versions(of: identifier, history))
                + writer.store(identifier, values)
        }
        isEnded = true
        guard try storage.account(account) != nil else { throw .noSuchAccount }
        return writer.end()
    }

    private func versions(
        of identifier: StoreIdentifier, _ rule: HistoryRule
    ) throws(StorageError) -> [RecordVersion] {
        let key = StoreReference(account: account, identifier: identifier)
        let found = try storage.versions(of: key, key: nil) { _, lines in
            rule.page(of: lines, after: nil, max: .max, bytesMax: .max).chosen
        }
        return try found.map { version throws(StorageError) in try version.version() }
    }

    private func values(
        of identifier: StoreIdentifier
    ) throws(StorageError) -> [Key: PropertyListValue] {
        let key = StoreReference(account: account, identifier: identifier)
        guard case .changes(let records, _, _, _) = try storage.read(key, since: nil) else {
            return [:]
        }
        return try records.map { record throws(StorageError) in try record.record() }.visibleValues
    }
}

extension ArchiveManifest.Device {
    fileprivate init(_ device: Device) {
        self.init(
            id: device.reference.id.description, name: device.displayName,
            createdMilliseconds: device.createdMilliseconds,
            seenMilliseconds: device.seenMilliseconds)
    }
}
