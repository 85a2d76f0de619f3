// SPDX-License-Identifier: Apache-2.0

/// Who asks a server for something, as its credential says.
package enum Caller: Hashable, Sendable {
    /// Without a credential.
    case nobody
    /// With a credential that is nobody's: never given, or revoked.
    case stranger
    case `operator`
    case device(DeviceRights)
}
