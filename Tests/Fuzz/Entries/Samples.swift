// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The values that the checks and the seeds of the corpus are made of.
enum Samples {
    static let device = DeviceID(rawValue: 7)
    static let milliseconds: Int64 = 1_800_000_000_000
    static let cursor = Position(epoch: 0x0123_4567_89AB_CDEF, revision: 42).cursor
    static let key = named("level")
    static let otherKey = named("Schlüssel")

    static let config = ServerConfig(
        serverMilliseconds: milliseconds, limits: StoreLimits(), allowance: Allowance(),
        deletionsRememberedSeconds: 2_592_000, keepAliveSeconds: 20)

    static let emptyStore = ChangeSet(
        records: [], cursor: cursor, serverMilliseconds: milliseconds, isWhole: true)

    /// One of each type, and the values that an encoding is most likely to spoil.
    static let values: [String: PropertyListValue] = [
        "string": .string("é👩🏽‍🚀<&\u{0}"), "boolean": .boolean(true),
        "integer": .integer(.min), "unsigned": .unsigned(.max), "real": .real(-0.0),
        "nan": .real(.nan), "date": .date(800_000_000.123456), "data": .data([0, 255, 10]),
        "array": .array([.boolean(false), .integer(0), .real(0), .array([])]),
        "dictionary": .dictionary([
            "": .data([]), "\u{E9}": .integer(1), "e\u{301}": .integer(2),
            "inner": .dictionary(["k": .string("v")]),
        ]),
        "deep": (0..<24).reduce(.integer(1)) { value, level in
            level.isMultiple(of: 2) ? .array([value]) : .dictionary(["k": value])
        },
    ]

    static func record(
        _ value: PropertyListValue?, key: Key = key, counter: UInt16 = 3,
        device: DeviceID = DeviceID(rawValue: 0xFEDC_BA98_7654_3210)
    ) -> Record {
        Record(
            key: key, content: value.map(Content.value) ?? .deleted,
            stamp: Stamp(
                HybridTimestamp(milliseconds: milliseconds, counter: counter), device))
    }

    private static func named(_ name: String) -> Key {
        guard let key = try? Key(name) else { preconditionFailure("The key \(name) is none.") }
        return key
    }
}
