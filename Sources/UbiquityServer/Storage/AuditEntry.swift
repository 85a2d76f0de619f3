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

/// What was done. The words are the protocol's.
package enum AuditDeed: String, Hashable, Sendable, CaseIterable {
    case accountCreated = "account-created"
    case accountRenamed = "account-renamed"
    case accountErased = "account-erased"
    case codeMade = "code-made"
    case deviceSignedIn = "device-signed-in"
    case deviceRenamed = "device-renamed"
    case deviceRevoked = "device-revoked"
    /// Its credential had expired long before.
    case deviceRemoved = "device-removed"
    case appRegistered = "app-registered"
    case appRemoved = "app-removed"
}

/// Who did it.
package enum AuditActor: Hashable, Sendable {
    /// On the server's machine, by the data folder.
    case operatorLocally
    /// With the operator's credential.
    case operatorByCredential
    /// A device of the account.
    case device(DeviceID)
    /// The server by itself.
    case housekeeping

    /// The word of the protocol.
    package var word: String {
        switch self {
        case .operatorLocally: "operator-locally"
        case .operatorByCredential: "operator-by-credential"
        case .device: "device"
        case .housekeeping: "housekeeping"
        }
    }

    /// Nil: it is none.
    package var device: DeviceID? {
        if case .device(let id) = self { id } else { nil }
    }

    /// Nil for a word that there is not.
    init?(word: String, device: DeviceID?) {
        switch (word, device) {
        case ("operator-locally", _): self = .operatorLocally
        case ("operator-by-credential", _): self = .operatorByCredential
        case ("device", let device?): self = .device(device)
        case ("housekeeping", _): self = .housekeeping
        default: return nil
        }
    }
}
