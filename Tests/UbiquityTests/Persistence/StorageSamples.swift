// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// One of the stores of local values that the shared suite runs over.
enum Backend: String, CaseIterable, Sendable {
    case memory, sqlite
}

func record(_ key: String, _ value: PropertyListValue?, at time: UInt64 = 1) throws -> Record {
    Record(
        key: try Key(key), content: value.map(Content.value) ?? .deleted,
        stamp: Stamp(
            HybridTimestamp(rawValue: time), DeviceID(rawValue: .max - 1), digest: .max - time))
}

extension StoredEntry {
    static func confirmed(
        _ key: String, _ value: PropertyListValue?, at time: UInt64 = 1
    ) throws -> StoredEntry {
        StoredEntry(key: try Key(key), confirmed: try record(key, value, at: time))
    }
}

extension SaveBatch {
    init(after version: Int64, _ entries: [StoredEntry] = [], meta: StoredMeta? = nil) {
        self.init(expectedVersion: version, entries: entries, meta: meta, refused: [])
    }
}

/// Each type, and the values that an encoding is most likely to spoil.
let hardValues: [String: PropertyListValue] = [
    "empty string": .string(""), "zero byte": .string("a\0b"), "emoji": .string("👩🏽‍🚀"),
    "true": .boolean(true), "false": .boolean(false),
    "least": .integer(.min), "greatest": .integer(.max), "unsigned": .unsigned(.max),
    "zero": .real(0), "minus zero": .real(-0.0), "NaN": .real(.nan), "infinity": .real(-.infinity),
    "date": .date(0.1 + 0.2), "no data": .data([]), "data": .data([0, 255, 0]),
    "no array": .array([]), "no dictionary": .dictionary([:]),
    "nested": .array([.dictionary(["": .array([.boolean(true), .integer(1), .real(1)])])]),
]
