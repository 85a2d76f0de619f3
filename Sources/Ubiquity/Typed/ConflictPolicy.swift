// SPDX-License-Identifier: Apache-2.0

public import Foundation
package import UbiquityCore

/// The rule for merging writes of one key that devices make without knowing of each other.
///
/// Declare it in the ``UbiquityKey``, or set it with
/// ``UbiquityAdditions/setConflictPolicy(_:forKey:)``, the same in every app and version that writes
/// the key. A policy gives the same result on every device, in whatever order
/// the writes arrive. It loses nothing that it keeps, even with a lost answer, a device restored
/// from a backup, a cloned machine, or a server restored from a backup.
///
/// When read, a key with a policy has one value like any other, also in apps and commands that know
/// nothing of the policy. A write of such an app replaces everything that it saw there.
public enum ConflictPolicy: Sendable {
    /// The last write wins, as for every key without a policy.
    case latest
    /// The greatest number, date or string wins. Writing a smaller one does nothing.
    case maximum
    /// The smallest number, date or string wins. Writing a greater one does nothing.
    case minimum
    /// An array without duplicates. It contains everything that any device added, except what a
    /// device removed and no other has added since. New elements are last, in the order in which
    /// they were added. A changed element counts as one removed and another added.
    case unionOfArrays
    /// A dictionary whose entries are written and removed independently. Of two writes of one entry
    /// the later wins, and replaces the whole entry.
    case unionOfDictionaries
    /// A number to which every device adds. A write adds the difference from the store's value, and
    /// nothing is lost or added twice. Integers stop at the limits of `Int64`. Prefer
    /// ``UbiquityAdditions/increment(forKey:by:)``, which does not depend on the store's value.
    case counter
    /// The app's own rule, which merges the earlier and the later of two values. With more values,
    /// it is called again with its result and the next one.
    ///
    /// It must give the same result for the same values on every device, so it should use nothing
    /// else. It may use the store, which has the value from before the conflict until it returns,
    /// but a write to its own key may be followed by another call. It is called on any thread, and
    /// the store's sync waits for it. The result is not stored.
    /// The next write of an app replaces all of the values. If the result is not a property list,
    /// the later value is used.
    case custom(@Sendable (_ earlier: ConflictingValue, _ later: ConflictingValue) -> Any)
}

/// One of two values that were written without knowledge of each other.
public struct ConflictingValue {
    /// Boxed as by ``UbiquitousKeyValueStore/object(forKey:)``.
    public var value: Any
    /// The time of the write, by the shared clock of all devices.
    public var date: Date
}

extension ConflictingValue {
    fileprivate init(_ concurrent: ConcurrentValue) {
        value = concurrent.value.boxed
        date = Date(milliseconds: concurrent.stamp.timestamp.milliseconds)
    }
}

extension ConflictPolicy {
    /// Creates the policy that writes the parts of Core's, for tests of every policy.
    package init(
        _ merging: MergePolicy,
        rule: @escaping @Sendable (ConflictingValue, ConflictingValue) -> Any
    ) {
        self =
            switch merging {
            case .maximum: .maximum
            case .minimum: .minimum
            case .array: .unionOfArrays
            case .dictionary: .unionOfDictionaries
            case .counter: .counter
            case .register: .custom(rule)
            }
    }

    package var isLatest: Bool { if case .latest = self { true } else { false } }

    /// Nil for the last write to win.
    var merging: MergePolicy? {
        switch self {
        case .latest: nil
        case .maximum: .maximum
        case .minimum: .minimum
        case .unionOfArrays: .array
        case .unionOfDictionaries: .dictionary
        case .counter: .counter
        case .custom: .register
        }
    }

    var resolver: Resolver? {
        guard case .custom(let resolve) = self else { return nil }
        return { earlier, later in
            let value = resolve(ConflictingValue(earlier), ConflictingValue(later))
            return (try? PropertyListValue(value)) ?? later.value
        }
    }
}
