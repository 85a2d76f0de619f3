// SPDX-License-Identifier: Apache-2.0

/// The author of a request, according to its credential.
package enum Caller: Hashable, Sendable {
    /// No credential.
    case nobody
    /// A credential that was never issued, or was revoked.
    case stranger
    case `operator`
    case device(DeviceRights)
}
