// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// How much each device may push, and each account with all its devices. What a push takes is known
/// when it has been read: it must find a token to be read at all, and pays the rest afterwards.
struct PushAllowance: Sendable {
    private let devices: RateLimiter<DeviceName>
    private let accounts: RateLimiter<AccountID>

    init(_ settings: ServerSettings) {
        devices = RateLimiter(settings.allowance, clock: settings.clock)
        accounts = RateLimiter(settings.allowance.ofAccount, clock: settings.clock)
    }

    /// - Throws: ``Problem`` that says when to come again.
    func take(_ device: DeviceName) throws(Problem) {
        do {
            try devices.take(device)
            try accounts.take(device.account)
        } catch { throw error.at(.pushesPerDevice) }
    }

    func charge(bytes: Int, _ device: DeviceName) {
        devices.charge(bytes: bytes, device)
        accounts.charge(bytes: bytes, device.account)
    }
}
