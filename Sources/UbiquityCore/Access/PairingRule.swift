// SPDX-License-Identifier: Apache-2.0

/// The bounds of what signs in further devices: sign-in requests, which anybody can make, and codes.
package enum PairingRule {
    /// The time that a sign-in request waits for an approval, and then for the device to sign in.
    package static let requestMilliseconds: Int64 = 600_000
    /// The requests that a server keeps. With more of them, a guessed user code would more often be
    /// somebody's.
    package static let requestsMax = 1_000
    /// The share of one address, so that nobody alone can use up all of them.
    package static let requestsPerAddressMax = 20
    /// The shortest interval between two attempts to sign in with a request.
    package static let pollSeconds: UInt64 = 5
    /// The codes that a device has made and that are not used yet.
    package static let codesPerDeviceMax = 5

    /// The longest validity of a code: a million minutes.
    package static let codeSecondsMax: Int64 = 60_000_000
    /// The lifetime of the code with which a browser creates the first account of an empty server.
    package static let firstCodeMilliseconds: Int64 = 3_600_000
    /// The codes for the first account: one for each start of each server that found no account.
    package static let firstCodesMax = 16

    /// Whether there is room for a further request.
    /// - Parameters:
    ///   - address: The address that makes it.
    ///   - addresses: The addresses of the requests that wait for a decision.
    package static func admits(requestFrom address: String, besides addresses: [String]) -> Bool {
        addresses.count < requestsMax
            && addresses.count { $0 == address } < requestsPerAddressMax
    }

    /// The most devices of an account that confined ones have added, all of them together: a share of
    /// the account's, so that its other devices find a place.
    /// - Parameter max: The most devices of the account.
    package static func addedDevicesMax(of max: Int) -> Int { Swift.max(1, max / 4) }

    /// The devices that end with some of an account: what a confined device has added ends with it, and
    /// so does what that has added.
    /// - Parameter adders: For each device that a confined one has added, that one.
    package static func ending(
        with devices: Set<DeviceID>, _ adders: [DeviceID: DeviceID]
    ) -> Set<DeviceID> {
        let added = Dictionary(grouping: adders.keys) { adders[$0] }
        var (ending, next) = (devices, Array(devices))
        while let device = next.popLast() {
            for child in added[device] ?? [] where ending.insert(child).inserted {
                next.append(child)
            }
        }
        return ending
    }
}
