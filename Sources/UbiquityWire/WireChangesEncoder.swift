// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
package import UbiquityCore

/// Encodes a ``WireChanges`` one record at a time, because all records of a store as messages take
/// many times their bytes. The bytes are those of ``WireFormat/encode(_:)``.
package struct WireChangesEncoder: Sendable {
    private let format: WireFormat
    private var isEmpty = true

    package init(_ format: WireFormat) { self.format = format }

    /// The next bytes, with this record.
    package mutating func encode(_ record: Record) -> [UInt8] {
        defer { isEmpty = false }
        switch format {
        // Concatenated messages are one message, with the records of all.
        case .protobuf: return format.encode(WireChanges.with { $0.records = [WireRecord(record)] })
        case .json:
            return Array((isEmpty ? #"{"records":["# : ",").utf8)
                + format.encode(WireRecord(record))
        }
    }

    /// The last bytes.
    /// - Parameter changes: Everything except the records, which must be empty.
    package func end(_ changes: ChangeSet) -> [UInt8] {
        let rest = format.encode(WireChanges(changes))
        guard format == .json, !isEmpty else { return rest }
        // There is always at least the cursor.
        return Array("],".utf8) + rest.dropFirst()
    }
}
