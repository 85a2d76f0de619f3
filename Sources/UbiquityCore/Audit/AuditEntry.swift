// SPDX-License-Identifier: Apache-2.0

/// An action, what it was done to, and by whom. IDs only: no names, keys, values or secrets, so that
/// the audit log may outlive the account that it is about.
package struct AuditEvent: Hashable, Sendable {
    package var action: AuditAction
    /// The account that it was done to; nil: none.
    package var account: AccountID?
    /// The device that it was done to; nil: none.
    package var device: DeviceID?
    package var actor: AuditActor
    /// The address of a failed sign-in, or how a limit changed; nil: nothing.
    package var detail: String?

    package init(
        _ action: AuditAction, of account: AccountID? = nil, _ device: DeviceID? = nil,
        by actor: AuditActor, detail: String? = nil
    ) {
        self.action = action
        self.account = account
        self.device = device
        self.actor = actor
        self.detail = detail
    }
}

/// An entry of the audit log: what was done, when, and how often.
package struct AuditEntry: Hashable, Sendable {
    /// Counts up; 0: it is not in the log yet.
    package var number: Int64
    package var event: AuditEvent
    /// The server's milliseconds since 1970.
    package var time: Int64
    /// The same of the last time.
    package var last: Int64
    package var count: Int

    package init(
        number: Int64 = 0, _ event: AuditEvent, at time: Int64, last: Int64? = nil, count: Int = 1
    ) {
        self.number = number
        self.event = event
        self.time = time
        self.last = last ?? time
        self.count = count
    }
}
