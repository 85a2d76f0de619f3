// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
package import UbiquityCore

/// Makes the file of an account: one JSON object, piece by piece. Each record and version is a line.
///
/// Everything in it is in the protocol's form, which keeps every value exactly. A file that was cut
/// off does not end, so no reader takes it for a whole one.
package struct AccountFileWriter: Sendable {
    static let format = "ubiquity-account-1"
    /// Whether nothing is in the list that is open.
    private var isFirst = true

    package init() {}

    /// The beginning, with the account's name and devices.
    package func begin(_ account: WireAccount, madeMilliseconds: Int64) -> [UInt8] {
        Array(
            #"{"format":"\#(Self.format)","madeMilliseconds":"\#(madeMilliseconds)","account":"#
                .utf8)
            + WireFormat.json.encode(account) + Array(#","stores":["#.utf8)
    }

    package mutating func beginStore(_ identifier: StoreIdentifier) -> [UInt8] {
        let bytes = item(Array(#"{"identifier":"\#(identifier.string)","records":["#.utf8))
        isFirst = true
        return bytes
    }

    /// Takes the place of an earlier one of the same key.
    /// - Parameter value: As apps see it; nil if the key was removed since.
    package mutating func record(_ key: Key, _ value: PropertyListValue?) -> [UInt8] {
        item(
            WireFormat.json.encode(
                WireDictionary.Entry.with {
                    $0.key = key.string
                    if let value { $0.value = WireValue(value) }
                }))
    }

    /// The history comes after the records.
    package mutating func beginHistory() -> [UInt8] {
        isFirst = true
        return Array(#"],"history":["#.utf8)
    }

    package mutating func version(_ version: RecordVersion) -> [UInt8] {
        item(WireFormat.json.encode(WireVersion(version)))
    }

    package mutating func endStore() -> [UInt8] {
        isFirst = false
        return Array("]}".utf8)
    }

    package func end() -> [UInt8] { Array("\n]}\n".utf8) }

    private mutating func item(_ bytes: [UInt8]) -> [UInt8] {
        defer { isFirst = false }
        return Array((isFirst ? "\n" : ",\n").utf8) + bytes
    }
}

/// The reason the file of an account cannot be used, as a sentence for people.
package enum AccountFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file does not begin like one.
    case notAccount
    case newer
    case incomplete
    /// - Parameter offset: The place in the file, in bytes.
    case malformed(offset: Int)
    case twice(String)
    case tooLarge(String)
    case recordInvalid(store: String, reason: String)

    package var description: String {
        switch self {
        case .notAccount: "it is not the export of an account"
        case .newer: "its format is newer; use a newer version of the program"
        case .incomplete: "it is not complete; export it again"
        case .malformed(let offset): "it is damaged at byte \(offset); export it again"
        case .twice(let name): "it has \"\(name.visible())\" twice"
        case .tooLarge(let what): "\(what) is larger than it may be"
        case .recordInvalid(let store, let reason):
            "a record of \(store) cannot be used: \(reason)"
        }
    }
}
