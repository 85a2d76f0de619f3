// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Checks how the XML format of a property list represents values. It has no fractions of a second
/// and no negative zero, reads a carriage return as a line feed, and cannot represent most control
/// characters at all.
package struct XMLCompatibility {
    /// The keys that cannot be written, or whose values cannot.
    package private(set) var impossible: [Key] = []
    /// The keys whose values would change.
    package private(set) var lossy: [Key] = []

    package init(_ values: [Key: PropertyListValue]) {
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            switch max(Self.damage(to: key.string), Self.damage(to: value)) {
            case .none: break
            case .loss: lossy.append(key)
            case .refusal: impossible.append(key)
            }
        }
    }

    /// Whether every reader of the XML format gets the same value: nothing is lost, no two keys
    /// differ only in Unicode normalisation, and nothing nests deeper than readers support.
    package static func isExact(_ value: PropertyListValue) -> Bool {
        damage(to: value) == .none && !hasFoldedKeys(value) && isShallow(value, levels: levelsMax)
    }

    /// The years 1 to 9999, in seconds since 2001. Outside of them, the format has no agreed
    /// meaning.
    package static let firstSecond = -63_113_904_000.0
    package static let lastSecond = 252_423_993_599.0
    private static let levelsMax = 100

    private static func isShallow(_ value: PropertyListValue, levels: Int) -> Bool {
        guard levels > 0 else { return false }
        return switch value {
        case .array(let values): values.allSatisfy { isShallow($0, levels: levels - 1) }
        case .dictionary(let entries):
            entries.values.allSatisfy { isShallow($0, levels: levels - 1) }
        case .string, .boolean, .integer, .unsigned, .real, .date, .data: true
        }
    }

    private static func hasFoldedKeys(_ value: PropertyListValue) -> Bool {
        switch value {
        case .array(let values): values.contains(where: hasFoldedKeys)
        case .dictionary(let entries):
            Set(entries.keys.map(\.string)).count != entries.count
                || entries.values.contains(where: hasFoldedKeys)
        case .string, .boolean, .integer, .unsigned, .real, .date, .data: false
        }
    }

    private enum Damage: Comparable {
        case none, loss, refusal
    }

    private static func damage(to value: PropertyListValue) -> Damage {
        switch value {
        case .string(let string): damage(to: string.string)
        case .date(let seconds):
            if !(seconds >= firstSecond && seconds < lastSecond + 1) {
                .refusal
            } else {
                seconds == seconds.rounded() ? .none : .loss
            }
        case .array(let values): values.map(damage).max() ?? .none
        case .dictionary(let entries):
            entries.map { max(damage(to: $0.key.string), damage(to: $0.value)) }.max() ?? .none
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
