// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The members of ``UbiquitousKeyValueStore`` that Apple's class does not have.
///
/// Members declared for this protocol rather than the class leave their names to apps. If the class
/// had a `changes` or a `removeAll()`, a subclass in an app, such as a test double, could not have
/// its own.
public protocol UbiquityAdditions {}

extension UbiquitousKeyValueStore: UbiquityAdditions {}

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Stores an integer like ``UbiquitousKeyValueStore/set(_:forKey:)-(Any?,_)``, which a subclass
    /// may override.
    ///
    /// Apple's setters take an `Int64`, a `Double` or anything. For `store.set(5, forKey: key)` the
    /// compiler should choose the last, but Swift 6.3 calls it ambiguous unless the key is a
    /// literal too. A setter of the literal's own type resolves this.
    public func set(_ value: Int, forKey aKey: String) {
        if isSubclass {
            set(NSNumber(value: value) as Any?, forKey: aKey)
        } else {
            set(Int64(value), forKey: aKey)
        }
    }
}
