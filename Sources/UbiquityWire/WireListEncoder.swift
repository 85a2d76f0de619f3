// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
package import UbiquityCore

/// Encodes a ``WireChanges``, ``WireSnapshot`` or ``WireHistory`` one element at a time, because all
/// of a store as messages take many times their bytes. The bytes are those of
/// ``WireFormat/encode(_:)``.
package struct WireListEncoder: Sendable {
    private let format: WireFormat
    private var isEmpty = true

    package init(_ format: WireFormat) { self.format = format }

    /// The next bytes, with this record.
    package mutating func encode(_ record: Record) -> [UInt8] {
        // A snapshot has its records in the same field.
        let record = WireRecord(record)
        return encode(record, as: "records", in: { WireChanges.with { $0.records = [record] } })
    }

    /// The next bytes, with this version.
    package mutating func encode(_ version: RecordVersion) -> [UInt8] {
        let version = WireVersion(version)
        return encode(
            version, as: "versions", in: { WireHistory.with { $0.versions = [version] } })
    }

    private mutating func encode(
        _ element: some Message, as name: String, in whole: () -> some Message
    ) -> [UInt8] {
        defer { isEmpty = false }
        switch format {
        // Concatenated messages are one message, with the elements of all.
        case .protobuf: return format.encode(whole())
        case .json:
            return Array((isEmpty ? #"{"\#(name)":["# : ",").utf8) + format.encode(element)
        }
    }

    /// The last bytes.
    /// - Parameters:
    ///   - changes: Everything except the records, which must be empty.
    ///   - store: As in ``WireChanges/init(_:of:)``.
    package func end(_ changes: ChangeSet, of store: StoreIdentifier? = nil) -> [UInt8] {
        end(WireChanges(changes, of: store))
    }

    /// The same for a snapshot.
    package func end(_ snapshot: StoreSnapshot) -> [UInt8] { end(WireSnapshot(snapshot)) }

    /// The same for a history.
    /// - Parameter next: Where it continues; nil if nowhere.
    package func end(next: String?, serverMilliseconds: Int64) -> [UInt8] {
        end(
            WireHistory.with {
                $0.next = next ?? ""
                $0.serverMilliseconds = UInt64(clamping: serverMilliseconds)
            })
    }

    private func end(_ rest: some Message) -> [UInt8] {
        let rest = format.encode(rest)
        guard format == .json, !isEmpty else { return rest }
        let end = Array((rest == Array("{}".utf8) ? "]" : "],").utf8)
        return end + rest.dropFirst()
    }
}
