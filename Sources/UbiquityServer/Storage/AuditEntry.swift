// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// An entry of the audit log: an action with its author and time. It only holds IDs, no names,
/// keys, values or secrets, so it may outlive the account that it concerns.
package struct AuditEntry: Hashable, Sendable {
    /// Ascending.
    package var number: Int64
    /// The server's milliseconds since 1970.
    package var time: Int64
    package var deed: AuditDeed
    /// The account that the action was applied to; nil if there is none.
    package var account: AccountID?
    /// The device that the action was applied to; nil if there is none.
    package var device: DeviceID?
    package var actor: AuditActor
}
