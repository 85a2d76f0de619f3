// SPDX-License-Identifier: Apache-2.0

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
