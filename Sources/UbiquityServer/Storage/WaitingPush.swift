// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A push that waits to be committed.
package struct WaitingPush: Sendable {
    package var store: StoreKey
    package var push: Push

    package init(store: StoreKey, push: Push) {
        self.store = store
        self.push = push
    }
}
