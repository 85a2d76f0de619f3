// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Authorises requests. All routes use it; ``AccessRule`` decides.
struct Gate: Sendable {
    let authenticator: Authenticator
    let apps: AppRegistry
    let clock: ServerClock

    private var rule: AccessRule { AccessRule(apps: apps.rule, now: clock.now()) }

    /// Returns the caller if it may do anything of this kind. Call this before parsing the address.
    /// - Throws: ``AccessRefusal``, ``StorageError``, ``Busy``.
    func caller(
        _ credential: String?, for owner: ServerOperation.Owner
    ) async throws -> Caller {
        // An operation open to anybody needs no look-up.
        guard owner != .anybody else { return .nobody }
        let caller = try await authenticator.caller(credential)
        try rule.check(caller, for: owner)
        return caller
    }

    /// - Throws: ``AccessRefusal``.
    func check(_ caller: Caller, _ operation: ServerOperation) throws(AccessRefusal) {
        try rule.check(caller, operation)
    }

    /// Checks whether the same credential still permits this operation.
    /// - Throws: ``AccessRefusal``, ``StorageError``, ``Busy``.
    func checkAgain(_ credential: String?, _ operation: ServerOperation) async throws {
        try check(try await authenticator.caller(credential), operation)
    }
}
