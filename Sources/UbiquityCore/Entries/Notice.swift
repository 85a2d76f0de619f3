// SPDX-License-Identifier: Apache-2.0

/// A notification of changes for the app.
package struct Notice: Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        case serverChange
        case initialSync
        case quotaViolation
        case accountChange
        /// The app's own write. Only posted with ``SyncEngine/notifiesOwnWrites``.
        case ownWrite
    }

    package var reason: Reason
    package var keys: Set<Key>

    package init(_ reason: Reason, _ keys: Set<Key>) {
        self.reason = reason
        self.keys = keys
    }
}
