// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore
internal import UbiquityWire

/// An account and a store identifier, which is unique within its account only.
struct StoreReference: Hashable, Sendable {
    var account: AccountID
    var identifier: StoreIdentifier

    /// The epoch of this store in a run of the server.
    func epoch(inRun run: UInt64) -> UInt64 {
        Position.epoch(ofRun: run, store: "\(account.string)/\(identifier)")
    }
}

/// A store as listed for its account.
struct StoreSummary: Hashable, Sendable {
    var identifier: StoreIdentifier
    var usage: Usage
    var position: Position
    /// As ``RegisteredApp/name``.
    var appName: String?
    /// As ``UbiquityCore/StoreState/contentGeneration``.
    var contentGeneration: UInt32?
}

/// The result of reading a store for a device, at one moment.
enum StoreRead: Hashable, Sendable {
    /// In no particular order.
    case changes(
        [StoredRecord], position: Position, isWhole: Bool, horizon: HybridTimestamp)
    case otherHistory
    case compacted
    /// What it has is sealed with another key, or not at all.
    case unsealed
}

/// A record in its stored form. Its value is decoded on demand, because the decoded value, or a
/// message with it, may take many times the memory.
struct StoredRecord: Hashable, Sendable {
    /// As ``UbiquityCore/Key/bytes``.
    var key: Data
    var stamp: Stamp
    /// A protocol message with the value; nil for a tombstone.
    var value: Data?

    /// The approximate size in memory.
    var bytes: Int { MemoryLayout<Self>.stride + key.count + (value?.count ?? 0) }
}

extension StoredRecord {
    init(_ record: Record) {
        self.init(
            key: Data(record.key.bytes), stamp: record.stamp,
            value: record.content.value.map { Data(WireFormat.protobuf.encode(WireValue($0))) })
    }

    /// - Throws: ``StorageError/unreadable`` if it was not written by a server, or is damaged.
    func record() throws(StorageError) -> Record {
        do {
            return Record(
                key: try key.withUnsafeBytes { try Key(bytes: $0) },
                content: try value.map { .value(try PropertyListValue(protobuf: $0)) } ?? .deleted,
                stamp: stamp)
        } catch { throw .unreadable }
    }
}

/// A registered app: an identifier that a server restricted to registered apps accepts.
struct RegisteredApp: Hashable, Sendable {
    var identifier: StoreIdentifier
    /// Its name for people.
    var name: String?
    /// The server's milliseconds since 1970.
    var registered: Int64
}

extension RegisteredApp {
    /// - Throws: ``StorageError/unreadable``.
    init(_ row: some ColumnReading) throws(StorageError) {
        self.init(
            identifier: try row.store(0), name: try row.textIfAny(1), registered: try row.time(2))
    }
}
