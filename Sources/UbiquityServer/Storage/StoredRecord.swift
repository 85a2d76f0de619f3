// SPDX-License-Identifier: Apache-2.0

package import Foundation
package import UbiquityCore
internal import UbiquityWire

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
