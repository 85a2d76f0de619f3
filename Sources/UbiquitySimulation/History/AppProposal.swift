// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Something that an app did to a key whose writes merge, and the store accepted.
///
/// Its number is in what it put there, see ``Mark`` for other keys, so that whoever sees that knows who
/// put it there. Only a counter has no room for it.
package struct AppProposal: Sendable {
    package enum Act: Hashable, Sendable {
        /// Added to a counter: what the run of the app has counted there by now.
        case count(run: PartID, amount: Int64, total: Int64)
        /// Offered a value for a maximum.
        case offer(Int64)
        /// Added an element.
        case add
        /// Removed the element that a proposal of this number had added.
        case remove(Int)
        /// Put something into a field, over what a proposal of that number had put there.
        case put(String, over: Int?)
        case clear(String)
        /// Put something in place of what those proposals had put there.
        case replace([Int])
    }

    package var number: Int
    package var process: Int
    package var disk: DiskName
    package var key: Key
    package var act: Act
    /// What the app saw right after.
    package var seen: PropertyListValue?

    package init(
        number: Int, process: Int, disk: DiskName, key: Key, act: Act, seen: PropertyListValue?
    ) {
        self.number = number
        self.process = process
        self.disk = disk
        self.key = key
        self.act = act
        self.seen = seen
    }
}

extension AppProposal {
    /// An offer has the number in its last digits: greater ones are not always later.
    package static func offer(_ size: Int, number: Int) -> Int64 {
        Int64(size) * 10_000_000 + Int64(number)
    }

    /// What a part has that the proposal of a number put there, but for counters.
    package static func value(_ number: Int) -> PropertyListValue { .string("p\(number)") }

    /// What a run has counted, by what its part has; nil: it is no count.
    package static func total(in value: PropertyListValue?) -> Int64? {
        guard case .array(let parts)? = value, parts.count == 2, case .integer(let total) = parts[1]
        else { return nil }
        return total
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
