// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What a storage needs to decide a batch of pushes.
package struct CommitRules: Sendable {
    package var admission: PushAdmission
    /// This run of the server, drawn by chance.
    package var run: UInt64
    package var storesPerAccountMax: Int

    package init(admission: PushAdmission, run: UInt64, storesPerAccountMax: Int) {
        self.admission = admission
        self.run = run
        self.storesPerAccountMax = storesPerAccountMax
    }

    /// Whether the answer says what a store may hold once, and as much again at most: so its size is
    /// known before the push is decided, whatever the push.
    package func mayAnswer(_ push: Push, over records: [Key: Record]) -> Bool {
        push.repeatedBytes(over: records) <= admission.limits.storeBytesMax
    }

    package func epoch(of store: StoreKey) -> UInt64 {
        Position.epoch(ofRun: run, store: "\(store.account.string)/\(store.identifier)")
    }
}
