// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// What the XML form of a property list makes of some values: it has no fractions of a second and no
/// negative zero, reads a carriage return as a line end, and cannot hold most control characters at all.
struct XMLFitness {
    /// The keys whose values, or which themselves, cannot be written.
    private(set) var impossible: [Key] = []
    /// The keys whose values would read as others.
    private(set) var lossy: [Key] = []

    init(_ values: [Key: PropertyListValue]) {
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            switch max(Self.damage(to: key.string), Self.damage(to: value)) {
            case .none: break
            case .loss: lossy.append(key)
            case .refusal: impossible.append(key)
            }
        }
    }

    private enum Damage: Comparable {
        case none, loss, refusal
    }

    private static func damage(to value: PropertyListValue) -> Damage {
        switch value {
        case .string(let string): damage(to: string.string)
        case .date(let seconds):
            if !DateText.hasCalendar(seconds) {
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

extension XMLFitness {
    private static let keysShown = 5

    /// Names some of the keys.
    static func names(_ keys: [Key]) -> String {
        let shown = keys.prefix(keysShown).map { JSON.string($0.string).text }
        let more = keys.count > shown.count ? " and \(keys.count - shown.count) more" : ""
        return shown.joined(separator: ", ") + more
    }
}
