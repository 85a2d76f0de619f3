// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// One line of the audit trail: who did what, and when. IDs only: no names, keys, values or
/// secrets, so that an entry may outlive the account that it is about.
package struct AuditEntry: Hashable, Sendable {
    /// Counts up.
    package var number: Int64
    /// The server's milliseconds since 1970.
    package var time: Int64
    package var deed: AuditDeed
    /// The account that it was done to; nil: none.
    package var account: AccountID?
    /// The device that it was done to; nil: none.
    package var device: DeviceID?
    package var actor: AuditActor
}
