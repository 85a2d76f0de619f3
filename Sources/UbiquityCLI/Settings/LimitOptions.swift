// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore
import UbiquityServer

/// An option for each ``ServerLimit``. The argument parser finds the options of a type by reflection,
/// so the type reflects the table.
struct LimitOptions: ParsableArguments, CustomReflectable {
    /// The given numbers, by option.
    private var numbers: [String: Double] = [:]

    init() {}

    var customMirror: Mirror {
        Mirror(self, children: ServerLimit.all.map { ($0.option, Self.option($0) as Any) })
    }

    private static func option(_ limit: ServerLimit) -> Option<Double?> {
        let fallback = limit.standard.map { " (default: \(text($0)))" } ?? ""
        return Option(
            name: .customLong(limit.option),
            help: ArgumentHelp("\(limit.sentence)\(fallback)", valueName: "number"),
            transform: { try number($0, for: limit) })
    }

    private struct OptionKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        let options = try decoder.container(keyedBy: OptionKey.self)
        for limit in ServerLimit.all {
            let key = OptionKey(stringValue: limit.option)
            numbers[limit.option] = try options.decode(Option<Double?>.self, forKey: key)
                .wrappedValue
        }
    }

    /// - Throws: `ValidationError` for limits that contradict each other.
    static func check(_ settings: ServerSettings) throws {
        if let contradiction = settings.limits.contradiction {
            throw ValidationError(
                "The limits contradict each other: \(contradiction). Raise --push-bytes-max, or "
                    + "lower --value-bytes-max.")
        }
        let pushBytesMax = settings.limits.pushBytesMax
        guard settings.buffersBytesMax / 12 >= pushBytesMax else {
            throw ValidationError(
                "The limits contradict each other: a twelfth of --buffers-bytes-max must hold "
                    + "a push of \(pushBytesMax) bytes. Raise it to \(12 * pushBytesMax), or lower "
                    + "--push-bytes-max.")
        }
    }

    func apply(to settings: inout ServerSettings) {
        for limit in ServerLimit.all {
            if let number = numbers[limit.option] { limit.set(number, in: &settings) }
        }
    }

    private static func number(_ text: String, for limit: ServerLimit) throws -> Double {
        let number = limit.isWhole ? Int(text).map(Double.init) : Double(text)
        guard let number, limit.range.contains(number) else {
            throw ValidationError(
                limit.isWhole
                    ? "it needs a whole number from 1 to \(Self.text(limit.range.upperBound))."
                    : "it needs a number above 0, of at most \(Self.text(limit.range.upperBound)).")
        }
        return number
    }

    /// Without a fraction that is 0.
    static func text(_ number: Double) -> String {
        Int(exactly: number).map(String.init) ?? "\(number)"
    }
}
