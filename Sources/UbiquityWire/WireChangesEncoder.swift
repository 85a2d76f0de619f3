// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
package import UbiquityCore

/// The bytes of a ``WireChanges``, made one record after the other, for all records of a store as messages
/// take many times their bytes. The same bytes that ``WireFormat/encode(_:)`` makes.
package struct WireChangesEncoder: Sendable {
    private let format: WireFormat
    private var isEmpty = true

    package init(_ format: WireFormat) { self.format = format }

    /// The bytes that follow those before.
    package mutating func encode(_ record: Record) -> [UInt8] {
        defer { isEmpty = false }
        switch format {
        // Messages one after the other are one message, with the records of all.
        case .protobuf: return format.encode(WireChanges.with { $0.records = [WireRecord(record)] })
        case .json:
            return Array((isEmpty ? #"{"records":["# : ",").utf8)
                + format.encode(WireRecord(record))
        }
    }

    /// The last bytes.
    /// - Parameter changes: All but the records, of which it has none.
    package func end(_ changes: ChangeSet) -> [UInt8] {
        let rest = format.encode(WireChanges(changes))
        guard format == .json, !isEmpty else { return rest }
        // The cursor at least is always there.
        return Array("],".utf8) + rest.dropFirst()
    }
}
