// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Lets a request in or not. Every route is behind it; ``AccessRule`` decides.
struct Gate: Sendable {
    let authenticator: Authenticator
    let apps: AppRegistry
    let clock: ServerClock

    private var rule: AccessRule { AccessRule(apps: apps.rule, now: clock.now()) }

    /// Who asks, if they may do anything of the kind at all: to be asked before an address is
    /// looked at.
    /// - Throws: ``AccessRefusal``, ``StorageError``, ``Busy``.
    func caller(
        _ credential: String?, for owner: ServerOperation.Owner
    ) async throws -> Caller {
        // Whoever may anyway need not be looked up.
        guard owner != .anybody else { return .nobody }
        let caller = try await authenticator.caller(credential)
        try rule.check(caller, for: owner)
        return caller
    }

    /// - Throws: ``AccessRefusal``.
    func check(_ caller: Caller, _ operation: ServerOperation) throws(AccessRefusal) {
        try rule.check(caller, operation)
    }

    /// Whether the same credential still lets its device do this.
    /// - Throws: ``AccessRefusal``, ``StorageError``, ``Busy``.
    func checkAgain(_ credential: String?, _ operation: ServerOperation) async throws {
        try check(try await authenticator.caller(credential), operation)
    }
}
