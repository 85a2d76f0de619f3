// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The rows that the writer remembers, so that a push need not read them. Used in the writer's
/// transactions, one at a time, and equal to the rows as of the last one that was committed.
///
/// Forgotten are: everything, when another process has written or an account was erased or sealed; a store,
/// when it is compacted; a device, when it was removed. What a transaction changes is remembered
/// when it is committed, and never if it is rolled back.
///
/// Of readers, those that find a device by its credential remember it here, unless something has been
/// forgotten since they began. So a device is only forgotten when its removal is committed: a
/// reader that began after that does not find it.
struct WriterMemory: Sendable {
    /// The file's `data_version` as of which all of this is true; nil before the first commit.
    var version: Int64?
    var stores = RecentTable<StoreReference, SQLiteStore>(bytesMax: 32 << 20)
    /// The devices that are signed in and not revoked.
    var devices = RecentTable<DeviceReference, Void>(bytesMax: 8 << 20)
    /// The generations of accounts' keys.
    var generations = RecentTable<AccountID, UInt32>(bytesMax: 8 << 20)

    mutating func forgetAll() {
        generations.removeAll()
        stores.removeAll()
        devices.removeAll()
    }

    mutating func remember(_ device: DeviceReference) { devices.set(device, (), bytes: 0) }

    mutating func remember(_ store: SQLiteStore, as key: StoreReference) {
        stores.set(key, store, bytes: store.bytes)
    }
}
