// SPDX-License-Identifier: Apache-2.0

package import Foundation
package import UbiquityCore
internal import UbiquityWire

/// An account and a store identifier, which is unique within its account only.
package struct StoreReference: Hashable, Sendable {
    package var account: AccountID
    package var identifier: StoreIdentifier
}

/// A store as listed for its account.
package struct StoreSummary: Hashable, Sendable {
    package var identifier: StoreIdentifier
    package var usage: Usage
    package var position: Position
}

/// The result of reading a store for a device, at one moment.
package enum StoreRead: Hashable, Sendable {
    /// In no particular order.
    case changes(
        [StoredRecord], position: Position, isWhole: Bool, horizon: HybridTimestamp)
    case otherHistory
    case compacted
}

/// A record in its stored form. Its value is decoded on demand, because the decoded value, or a
/// message with it, may take many times the memory.
package struct StoredRecord: Hashable, Sendable {
    /// As ``UbiquityCore/Key/bytes``.
    package var key: Data
    package var stamp: Stamp
    /// A protocol message with the value; nil for a tombstone.
    package var value: Data?

    package init(key: Data, stamp: Stamp, value: Data?) {
        self.key = key
        self.stamp = stamp
        self.value = value
    }

    package init(_ record: Record) {
        self.init(
            key: Data(record.key.bytes), stamp: record.stamp,
            value: record.content.value.map { Data(WireFormat.protobuf.encode(WireValue($0))) })
    }

    /// The approximate size in memory.
    package var bytes: Int { MemoryLayout<Self>.stride + key.count + (value?.count ?? 0) }

    /// - Throws: ``StorageError/unreadable`` if it was not written by a server, or is damaged.
    package func record() throws(StorageError) -> Record {
        do {
            return Record(
                key: try key.withUnsafeBytes { try Key(bytes: $0) },
                content: try value.map { .value(try PropertyListValue(protobuf: $0)) } ?? .deleted,
                stamp: stamp)
        } catch { throw .unreadable }
    }
}

/// A registered app: an identifier that a server restricted to registered apps accepts.
package struct RegisteredApp: Hashable, Sendable {
    package var identifier: StoreIdentifier
    /// The server's milliseconds since 1970.
    package var registered: Int64
}
