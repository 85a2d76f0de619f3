// SPDX-License-Identifier: Apache-2.0

/// How often anybody may try to sign in: each address, and all together.
struct SignInThrottle: Sendable {
    private let addresses: RateLimiter<String>
    private let all: RateLimiter<Everybody>

    private enum Everybody { case all }

    init(_ settings: ServerSettings) {
        addresses = RateLimiter(settings.signInAllowance, clock: settings.clock)
        all = RateLimiter(settings.signInTotalAllowance, clock: settings.clock)
    }

    /// What one address has too much of does not count against the others.
    /// - Throws: ``Problem`` that says when to come again.
    func take(_ address: String) throws(Problem) {
        try addresses.take(address)
        try all.take(.all)
    }
}
