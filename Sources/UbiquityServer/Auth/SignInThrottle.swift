// SPDX-License-Identifier: Apache-2.0

/// Limits the attempts to sign in: by address, and in total.
struct SignInThrottle: Sendable {
    private let addresses: RateLimiter<String>
    private let all: RateLimiter<Everybody>

    private enum Everybody { case all }

    init(_ settings: ServerSettings) {
        addresses = RateLimiter(settings.signInAllowance, clock: settings.clock)
        all = RateLimiter(settings.signInTotalAllowance, clock: settings.clock)
    }

    /// Attempts above an address's limit do not count towards the total.
    /// - Throws: ``Problem`` with the time to wait.
    func take(_ address: String) throws(Problem) {
        try addresses.take(address)
        try all.take(.all)
    }
}
