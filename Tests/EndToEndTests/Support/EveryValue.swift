// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import Ubiquity
internal import UbiquityCore

/// Values of every type, the awkward ones included, alone and nested.
enum EveryValue {
    static let values: [Key: PropertyListValue] = {
        // No literal of a dictionary: its strings are equal where only Unicode's forms differ.
        let leaves: KeyValuePairs<String, PropertyListValue> = [
            "string": .string("text"), "empty string": .string(""),
            "lines": .string("a\r\nb\tc\u{0}d"), "composed": .string("e\u{301} \u{e9}"),
            "true": .boolean(true), "false": .boolean(false), "one": .integer(1),
            "least": .integer(.min), "greatest": .integer(.max),
            "unsigned": .unsigned(.max), "1.0": .real(1), "third": .real(1.0 / 3),
            "minus zero": .real(-0.0), "tiny": .real(.leastNonzeroMagnitude),
            "nan": .real(.nan), "infinity": .real(.infinity),
            "minus infinity": .real(-.infinity), "date": .date(802_771_200.123456),
            "old date": .date(-63_114_076_800.5), "data": .data([0, 255, 1, 128]),
            "empty data": .data([]), "empty array": .array([]),
            "empty dictionary": .dictionary([:]), "👩‍👩‍👧‍👦 🇺🇳": .string("🏳️‍🌈"),
            "cafe\u{301}": .string("decomposed"), "caf\u{e9}": .string("composed"),
        ]
        let inner = Dictionary(uniqueKeysWithValues: leaves.map { (ExactString($0), $1) })
        let nested = PropertyListValue.dictionary([
            "all": .dictionary(inner), "list": .array(leaves.map(\.value)),
        ])
        let pairs = leaves.map { (try! Key($0), $1) } + [(try! Key("nested"), nested)]
        return Dictionary(uniqueKeysWithValues: pairs)
    }()

    /// As deep as values may be.
    static var deep: [Key: PropertyListValue] {
        var array = PropertyListValue.array([])
        var dictionary = PropertyListValue.dictionary([:])
        for _ in 1..<PropertyListValue.depthMax {
            array = .array([array])
            dictionary = .dictionary(["a": dictionary])
        }
        return [try! Key("deep array"): array, try! Key("deep dictionary"): dictionary]
    }

    /// Foundation's dictionaries take the composed and the decomposed key for one.
    static var withoutLookAlikes: [Key: PropertyListValue] {
        var values = values.filter { $0.value != .string("decomposed") }
        guard let key = try? Key("nested"), case .dictionary(var nested) = values[key],
            case .dictionary(var inner) = nested["all"]
        else { return values }
        inner = inner.filter { $0.value != .string("decomposed") }
        nested["all"] = .dictionary(inner)
        values[key] = .dictionary(nested)
        return values
    }

    static func expect(
        _ expected: [Key: PropertyListValue], in device: Device,
        at location: SourceLocation = #_sourceLocation
    ) {
        let actual = device.store.values
        #expect(Set(actual.keys) == Set(expected.keys), sourceLocation: location)
        // Deep values are not worth printing.
        for (key, value) in expected {
            let isSame = actual[key] == value
            #expect(isSame, "\(key)", sourceLocation: location)
        }
    }
}
