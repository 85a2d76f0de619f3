// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// What ``UbiquitousKeyValueStore`` has and Apple's class has not.
///
/// A member that is declared for this protocol, and not in the class, leaves its name to apps: a
/// subclass of theirs, such as a test double, could not have a property `changes` or a method
/// `removeAll()` if the class had one.
public protocol UbiquityAdditions {}

extension UbiquitousKeyValueStore: UbiquityAdditions {}

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Stores an integer. As ``UbiquitousKeyValueStore/set(_:forKey:)-(Any?,_)``, through which a
    /// subclass's goes.
    ///
    /// Apple's setters take an `Int64`, a `Double` or anything, and for `store.set(5, forKey: key)`
    /// the compiler is to choose the last; but Swift 6.3 calls it ambiguous unless the key is a
    /// literal too. A setter of the literal's own type decides it.
    public func set(_ value: Int, forKey aKey: String) {
        if isSubclass {
            set(NSNumber(value: value) as Any?, forKey: aKey)
        } else {
            set(Int64(value), forKey: aKey)
        }
    }
}
