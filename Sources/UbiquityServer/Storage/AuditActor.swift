// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

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
