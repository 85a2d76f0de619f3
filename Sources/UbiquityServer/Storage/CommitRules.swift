// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The rules by which a storage decides a batch of pushes.
package struct CommitRules: Sendable {
    package var admission: PushAdmission
    /// A random number for this run of the server.
    package var run: UInt64
    package var storesPerAccountMax: Int

    package init(admission: PushAdmission, run: UInt64, storesPerAccountMax: Int) {
        self.admission = admission
        self.run = run
        self.storesPerAccountMax = storesPerAccountMax
    }

    /// Whether the answer repeats at most as much as a store may hold. This bounds its size before
    /// the push is decided.
    package func mayAnswer(_ push: Push, over records: [Key: Record]) -> Bool {
        push.repeatedBytes(over: records) <= admission.limits.storeBytesMax
    }

    package func epoch(of store: StoreReference) -> UInt64 {
        Position.epoch(ofRun: run, store: "\(store.account.string)/\(store.identifier)")
    }
}
