// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import UbiquityCore

/// What becomes of writes of one key that devices make without knowing of each other.
///
/// Declared with ``UbiquityAdditions/setConflictPolicy(_:forKey:)``, the same in every app and version
/// that writes the key. A policy gives the same result on every device, in whatever order the writes
/// arrive, and loses nothing of what it keeps: not with an answer that was lost, a device restored
/// from a backup, a cloned machine, or a server restored from a copy.
///
/// To who reads, a key with a policy is one value as any other, also to apps and commands that know
/// nothing of the policy. What such an app writes takes the place of all that it saw there.
public enum ConflictPolicy: Sendable {
    /// The write that was made last wins: what every key has without a policy.
    case latest
    /// The greatest number, date or string wins. A write of a lesser one does nothing.
    case maximum
    /// The least number, date or string wins. A write of a greater one does nothing.
    case minimum
    /// An array without repetition. What any device adds is there, and what one removes is gone,
    /// unless another added it anew. New elements come last, in the order in which they were added.
    /// An element that changes is one that was removed and another that was added.
    case unionOfArrays
    /// A dictionary, each entry of which is written and removed by itself: of two writes of one entry
    /// the later wins. What is inside of an entry is replaced as a whole.
    case unionOfDictionaries
    /// A number to which every device adds: the difference between what the store has and what an app
    /// writes is added, and none is lost or added twice. Integers stop at the ends of `Int64`. Best written
    /// with ``UbiquityAdditions/increment(forKey:by:)``, which does not ask what the store has.
    case counter
    /// The app's own rule, for the earlier and the later of two values. Of more, it is given what it
    /// made of the first two and the third, and so on.
    ///
    /// It must give the same for the same on every device, must not use the store, and must be quick: it
    /// is called with the store's lock held. What it gives is not stored; when an app writes the key the
    /// next time, that takes the place of both. What it gives that is no property list stands for the
    /// later value.
    case custom(@Sendable (_ earlier: ConflictingValue, _ later: ConflictingValue) -> Any)
}

/// One of two values that were written without knowing of each other.
public struct ConflictingValue {
    /// Boxed as ``UbiquitousKeyValueStore/object(forKey:)`` boxes.
    public var value: Any
    /// When it was written, by the shared clock of all devices.
    public var date: Date
}

extension ConflictingValue {
    fileprivate init(_ sibling: Sibling) {
        value = sibling.value.boxed
        let seconds = Double(sibling.stamp.timestamp.milliseconds) / 1_000
        date = Date(timeIntervalSince1970: seconds)
    }
}

extension ConflictPolicy {
    /// Nil: none.
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
