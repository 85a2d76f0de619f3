// SPDX-License-Identifier: Apache-2.0

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// The changes from now on, the app's own included, each with its origin.
    public var changes: UbiquityChanges {
        backing.driver.notifyOwnWrites()
        return UbiquityChanges(backing.poster.changes)
    }
}
