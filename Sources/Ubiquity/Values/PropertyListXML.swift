// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

/// The XML format of a property list, which any program on Apple's systems and every text editor
/// can read.
///
/// It cannot represent all values, see ``XMLCompatibility``.
package enum PropertyListXML {
    /// - Returns: Nil for a value that Foundation cannot write.
    /// - Complexity: O(*n*) in the size of the value; the stack grows with its depth.
    package static func encode(_ value: PropertyListValue) -> [UInt8]? {
        let data = try? PropertyListSerialization.data(
            fromPropertyList: object(value), format: .xml, options: 0)
        return data.map { [UInt8]($0) }
    }

    private static func object(_ value: PropertyListValue) -> Any {
        switch value {
        case .string(let string): string.string
        case .boolean(let boolean): boolean
        case .integer(let integer): integer
        case .unsigned(let unsigned): unsigned
        case .real(let real): real
        case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
        case .data(let bytes): Data(bytes)
        case .array(let values): values.map(object)
        case .dictionary(let entries):
            Dictionary(entries.map { ($0.key.string, object($0.value)) }) { first, _ in first }
        }
    }
}

/// Checks how the XML format of a property list represents values. It has no fractions of a second
/// and no negative zero, reads a carriage return as a line feed, and cannot represent most control
/// characters at all. Most of its readers take two keys for one that differ only in Unicode
/// normalisation.
package struct XMLCompatibility {
    /// The keys that cannot be written, or whose values cannot.
    package private(set) var impossible: [Key] = []
    /// The keys whose values would change.
    package private(set) var lossy: [Key] = []

    package init(_ values: [Key: PropertyListValue]) {
        let spellings = Dictionary(grouping: values.keys, by: \.string)
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            let isAmbiguous = spellings[key.string].map { $0.count > 1 } ?? false
            switch max(Self.damage(to: key.string), Self.damage(to: value)) {
            case .none where !isAmbiguous: break
            case .loss where !isAmbiguous: lossy.append(key)
            default: impossible.append(key)
            }
        }
    }

    /// The years 1 to 9999, in seconds since 2001. Outside of them, the format has no agreed
    /// meaning.
    package static let firstSecond = -63_113_904_000.0
    package static let lastSecond = 252_423_993_599.0

    /// Whether a date is in those years.
    package static func hasCalendar(_ seconds: Double) -> Bool {
        seconds >= firstSecond && seconds < lastSecond + 1
    }

    private enum Damage: Comparable {
        case none, loss, refusal
    }

    private static func damage(to value: PropertyListValue) -> Damage {
        switch value {
        case .string(let string): damage(to: string.string)
        case .date(let seconds):
            if !hasCalendar(seconds) {
                .refusal
            } else {
                seconds == seconds.rounded() ? .none : .loss
            }
        case .array(let values): values.map(damage).max() ?? .none
        case .dictionary(let entries):
            if Set(entries.keys.map(\.string)).count != entries.count {
                .refusal
            } else {
                entries.map { max(damage(to: $0.key.string), damage(to: $0.value)) }.max() ?? .none
            }
        case .real(let real): real.bitPattern == (-0.0).bitPattern ? .loss : .none
        case .boolean, .integer, .unsigned, .data: .none
        }
    }

    private static func damage(to text: String) -> Damage {
        var damage = Damage.none
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\t", "\n": break
            case "\r": damage = .loss
            case "\u{00}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": return .refusal
            default: break
            }
        }
        return damage
    }
}
