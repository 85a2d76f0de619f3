// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The author of an audited action.
package enum AuditActor: Hashable, Sendable {
    /// On the server's machine, through the data folder.
    case operatorLocally
    /// With the operator's credential.
    case operatorByCredential
    /// A device of the account.
    case device(DeviceID)
    /// The server itself.
    case housekeeping

    /// The name in the protocol.
    package var word: String {
        switch self {
        case .operatorLocally: "operator-locally"
        case .operatorByCredential: "operator-by-credential"
        case .device: "device"
        case .housekeeping: "housekeeping"
        }
    }

    /// Nil if it is not a device.
    package var device: DeviceID? {
        if case .device(let id) = self { id } else { nil }
    }

    /// Fails for an unknown name.
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
