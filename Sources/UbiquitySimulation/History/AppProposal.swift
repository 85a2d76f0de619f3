// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Something that an app did to a key whose writes merge, and the store accepted.
///
/// Its number is in what it put there, see ``Mark`` for other keys, so that whoever sees that knows who
/// put it there. Only a count has no room for it: it is known by its part and the number of times.
package struct AppProposal: Sendable {
    package enum Act: Hashable, Sendable, Codable {
        /// Added to a counter, as the so many-th time under that part.
        case count(part: PartID, times: Int64, amount: Double)
        /// Offered a value for a maximum or minimum.
        case offer(part: PartID, Int64)
        /// Added an element.
        case add
        /// Removed the element that a proposal of this number had added.
        case remove(Int)
        /// Put something into a field, over what a proposal of that number had put there.
        case put(String, over: Int?)
        case clear(String)
        /// Put something in place of what those proposals had put there.
        case replace([Int])
        /// Wrote the key as an app without a policy does, having seen these records of it.
        case write(seen: [Key: PropertyListValue])
        /// Removed the key, having seen these records of it.
        case erase(seen: [Key: PropertyListValue])
    }

    package var number: Int
    package var process: Int
    package var disk: DiskName
    package var key: Key
    package var act: Act
    /// What the app saw right after.
    package var seen: PropertyListValue?
    /// The true time.
    package var time: Int64

    package init(
        number: Int, process: Int, disk: DiskName, key: Key, act: Act, seen: PropertyListValue?,
        time: Int64 = 0
    ) {
        self.number = number
        self.process = process
        self.disk = disk
        self.key = key
        self.act = act
        self.seen = seen
        self.time = time
    }
}

extension AppProposal {
    /// An offer has the number in its last digits: greater ones are not always later.
    package static func offer(_ size: Int, number: Int) -> Int64 {
        Int64(size) * 10_000_000 + Int64(number)
    }

    /// The rule of apps that have one of their own: neither of two is always the later one.
    package static let resolver: Resolver = { max($0.value, $1.value) }

    /// What a part has that the proposal of a number put there, but for counters.
    package static func value(_ number: Int) -> PropertyListValue { .string("p\(number)") }

    /// What a write without a policy puts there.
    package static func plain(_ number: Int, _ policy: MergePolicy) -> PropertyListValue {
        switch policy {
        case .counter: .integer(Int64(number) * 1_000)
        case .maximum, .minimum: .integer(offer(500, number: number))
        case .array: .array([value(number)])
        case .dictionary: .dictionary(["f0": value(number), "f1": value(number)])
        case .register: value(number)
        }
    }

    /// The proposal of which the key's own record has something; nil: of none.
    package static func number(
        inPlain value: PropertyListValue?, _ policy: MergePolicy
    ) -> Int? {
        guard let value else { return nil }
        switch value {
        case .array(let elements): return number(in: elements.first)
        case .dictionary(let entries): return number(in: entries.values.first)
        case .integer(let plain) where policy == .counter: return Int(plain / 1_000)
        default: return number(in: value)
        }
    }

    /// How often a run has counted and what, by what its part has; nil: it is no count.
    package static func count(
        in value: PropertyListValue?
    ) -> (times: Int64, total: Double)? {
        guard case .array(let fields)? = value, fields.count == 2,
            case .integer(let times) = fields[0], let total = fields[1].amount
        else { return nil }
        return (times, total)
    }

    /// Nil for anything but an integer.
    package static func integer(in value: PropertyListValue?) -> Int64? {
        switch value {
        case .integer(let number)?: number
        default: nil
        }
    }

    /// The number of the proposal that put the value there; nil: none did.
    package static func number(in value: PropertyListValue?) -> Int? {
        switch value {
        case .string(let text)? where text.string.hasPrefix("p"): Int(text.string.dropFirst())
        case .integer(let offer)?: Int(offer % 10_000_000)
        default: nil
        }
    }
}

extension PropertyListValue {
    /// Nil for anything but a number.
    package var amount: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .real(let number): number
        default: nil
        }
    }
}
