// SPDX-License-Identifier: Apache-2.0

/// What an app is told of changes that it did not make.
package struct Notice: Hashable, Sendable {
    /// With the numbers of `NSUbiquitousKeyValueStoreChangeReasonKey`.
    package enum Reason: Int, Hashable, Sendable {
        case serverChange = 0
        case initialSync = 1
        case quotaViolation = 2
        case accountChange = 3
    }

    package var reason: Reason
    package var keys: Set<Key>

    package init(_ reason: Reason, _ keys: Set<Key>) {
        self.reason = reason
        self.keys = keys
    }
}
