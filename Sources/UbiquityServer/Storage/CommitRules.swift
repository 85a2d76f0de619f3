// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What a storage needs to decide a batch of pushes.
package struct CommitRules: Sendable {
    package var admission: PushAdmission
    /// This run of the server, drawn by chance.
    package var epoch: UInt64
    package var storesPerAccountMax: Int

    package init(admission: PushAdmission, epoch: UInt64, storesPerAccountMax: Int) {
        self.admission = admission
        self.epoch = epoch
        self.storesPerAccountMax = storesPerAccountMax
    }
}
