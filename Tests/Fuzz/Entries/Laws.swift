// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore
internal import UbiquityWire

/// The laws that hold for every accepted value, whichever way it came.
enum Laws {
    static func check(_ value: PropertyListValue) throws {
        try must(isCanonical(value, depth: 1), "a value is outside the contract")
        try must(value.quotaBytes >= 0, "a value has less than no bytes")
        try must(!(value < value), "a value is less than itself")
        try checkForms(value)
        try checkBoxes(value)
    }

    /// Types and depth as the contract has them: one NaN, integers in `unsigned` only above the
    /// greatest signed one.
    private static func isCanonical(_ value: PropertyListValue, depth: Int) -> Bool {
        guard depth <= PropertyListValue.depthMax else { return false }
        switch value {
        case .string, .boolean, .integer, .data: return true
        case .sealed: return depth == 1
        case .unsigned(let number): return number > UInt64(Int64.max)
        case .real(let number), .date(let number):
            return !number.isNaN || number.bitPattern == Double.nan.bitPattern
        case .array(let values):
            return values.allSatisfy { isCanonical($0, depth: depth + 1) }
        case .dictionary(let entries):
            return entries.values.allSatisfy { isCanonical($0, depth: depth + 1) }
        }
    }

    private static func checkForms(_ value: PropertyListValue) throws {
        for format in WireFormat.allCases {
            let bytes = format.encode(WireValue(value))
            let again = try PropertyListValue(format.decode(WireValue.self, from: bytes))
            try must(again == value, "a value changed in \(format)")
            try must(
                format.encode(WireValue(again)) == bytes, "equal values differ in \(format)")
        }
        let (bytes, canonical) = (
            WireFormat.protobuf.encode(WireValue(value)), CanonicalForm.encode(value)
        )
        try must(canonical == bytes, "the canonical form is not protobuf's")
        if case .sealed = value { return }
        var elements = Int.max
        let again = try CanonicalForm.decode(canonical, within: &elements)
        try must(again == value, "a value changed in its canonical form")
    }

    /// Foundation's objects give the value back, unless two of its keys are one to them.
    private static func checkBoxes(_ value: PropertyListValue) throws {
        if case .sealed = value { return }
        guard !hasFoldedKeys(value) else { return }
        try must(try PropertyListValue(value.boxed) == value, "a value changed in its box")
    }

    /// False for a megabyte that was written out from little: to look at it tells nothing.
    static func isSmall(_ value: PropertyListValue) -> Bool {
        parts(of: value, upTo: 50_000) < 50_000 && value.quotaBytes < 1 << 20
    }

    /// Counts the value and all values in it.
    private static func parts(of value: PropertyListValue, upTo max: Int) -> Int {
        var count = 1
        switch value {
        case .array(let values):
            for value in values where count < max { count += parts(of: value, upTo: max - count) }
        case .dictionary(let entries):
            for value in entries.values where count < max {
                count += parts(of: value, upTo: max - count)
            }
        case .string, .boolean, .integer, .unsigned, .real, .date, .data, .sealed: break
        }
        return count
    }

    static func hasFoldedKeys(_ value: PropertyListValue) -> Bool {
        switch value {
        case .array(let values): values.contains(where: hasFoldedKeys)
        case .dictionary(let entries):
            Set(entries.keys.map(\.string)).count != entries.count
                || entries.values.contains(where: hasFoldedKeys)
        case .string, .boolean, .integer, .unsigned, .real, .date, .data, .sealed: false
        }
    }

    static func check(_ record: Record) throws {
        try must(!record.key.string.isEmpty, "a key is empty")
        try must(!record.wins(over: record), "a record wins over itself")
        try must(record.merged(with: record) == record, "a record changes by itself")
        if let value = record.content.value { try check(value) }
    }
}
