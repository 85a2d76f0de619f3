// SPDX-License-Identifier: Apache-2.0

/// An action, its target and its actor. Contains IDs only: no names, keys, values or secrets, so
/// that the audit log may outlive the account that it is about.
package struct AuditEvent: Hashable, Sendable {
    package var action: AuditAction
    /// The affected account, if any.
    package var account: AccountID?
    /// The affected device, if any.
    package var device: DeviceID?
    package var actor: AuditActor
    /// The address of a failed sign-in or of a sign-in request, the change of a server's limit, all
    /// own limits of an account, or the generation of its key.
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

extension AuditEvent {
    /// The server operator has a new credential, and the one before is refused.
    package static let credentialReplacement = AuditEvent(
        .credentialReplaced, by: .operatorLocally)
}

/// An entry of the audit log: an event, its times, and the number of occurrences.
package struct AuditEntry: Hashable, Sendable {
    /// Increases with each entry; 0 if it is not in the log yet.
    package var number: Int64
    package var event: AuditEvent
    /// The server's time of the first occurrence, in milliseconds since 1970.
    package var time: Int64
    /// The same for the last occurrence.
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

/// The entries of the audit log that somebody wants to see. Nil is for all.
package struct AuditFilter: Hashable, Sendable {
    package var action: AuditAction?
    package var account: AccountID?

    package init(action: AuditAction? = nil, account: AccountID? = nil) {
        self.action = action
        self.account = account
    }
}

/// An audited action. The raw values are the protocol's.
package enum AuditAction: String, Hashable, Sendable, CaseIterable {
    case accountCreated = "account-created"
    case accountRenamed = "account-renamed"
    case accountExported = "account-exported"
    case accountErased = "account-erased"
    /// The account is sealed with the key of another generation, or has another recovery key.
    case accountSealed = "account-sealed"
    /// All values of a sealed account were removed, and its mark.
    case accountReset = "account-reset"
    /// A device without the account's key has asked for that, in a week.
    case accountResetAnnounced = "account-reset-announced"
    /// A device with the key was heard of, so nothing is removed.
    case accountResetWithdrawn = "account-reset-withdrawn"
    case codeMade = "code-made"
    case signInFailed = "sign-in-failed"
    /// Somebody allowed a device that had no code to sign in.
    case signInApproved = "sign-in-approved"
    case signInDenied = "sign-in-denied"
    case deviceSignedIn = "device-signed-in"
    case deviceRenamed = "device-renamed"
    case deviceRevoked = "device-revoked"
    /// The device's credential had expired long before.
    case deviceRemoved = "device-removed"
    case appRegistered = "app-registered"
    case appRemoved = "app-removed"
    case limitChanged = "limit-changed"
    case databaseRestored = "database-restored"
    case credentialReplaced = "operator-credential-replaced"
}

/// The actor of an action in the audit log.
package enum AuditActor: Hashable, Sendable {
    /// The operator, on the server's machine, through the data folder.
    case operatorLocally
    /// The operator, with the operator's credential.
    case operatorByCredential
    /// A device of the account.
    case device(DeviceID)
    /// The server itself.
    case housekeeping
    /// Somebody without a valid credential.
    case stranger

    /// The name in the protocol.
    package var word: String {
        switch self {
        case .operatorLocally: "operator-locally"
        case .operatorByCredential: "operator-by-credential"
        case .device: "device"
        case .housekeeping: "housekeeping"
        case .stranger: "stranger"
        }
    }

    /// Nil unless it is a device.
    package var device: DeviceID? {
        if case .device(let id) = self { id } else { nil }
    }

    /// Nil for a word that does not exist.
    package init?(word: String, device: DeviceID?) {
        switch (word, device) {
        case ("operator-locally", _): self = .operatorLocally
        case ("operator-by-credential", _): self = .operatorByCredential
        case ("device", let device?): self = .device(device)
        case ("housekeeping", _): self = .housekeeping
        case ("stranger", _): self = .stranger
        default: return nil
        }
    }
}
