// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Limits the pushes of each device, and of each account with all its devices. The cost of a push
/// is only known after reading it: a push needs a token to be read at all, and the rest is charged
/// afterwards.
struct PushAllowance: Sendable {
    private let devices: RateLimiter<DeviceReference>
    private let accounts: RateLimiter<AccountID>

    init(_ settings: ServerSettings) {
        devices = RateLimiter(settings.allowance, clock: settings.clock)
        accounts = RateLimiter(settings.allowance.ofAccount, clock: settings.clock)
    }

    /// - Throws: ``Problem`` with the time to wait.
    func take(_ device: DeviceReference) throws(Problem) {
        do {
            try devices.take(device)
            try accounts.take(device.account)
        } catch { throw error.at(.pushesPerDevice) }
    }

    func charge(bytes: Int, _ device: DeviceReference) {
        devices.charge(bytes: bytes, device)
        accounts.charge(bytes: bytes, device.account)
    }
}
