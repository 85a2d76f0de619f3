// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// Signing in, and a person's operations on their own account and devices.
struct AccountRoutes: Sendable {
    let storage: any AccountStorage & PairingStorage
    let writer: BlockingThreads
    let readers: BlockingThreads
    let gate: Gate
    let revocation: Revocation
    let attempts: SignInThrottle
    let failures: FailedSignIns
    let allowance: PushAllowance
    let firstRun: FirstRun
    /// Nil if tokens of identity providers are not accepted.
    let identities: IdentityVerifier?
    let settings: ServerSettings

    /// Signs a device in with a code or an approved request in the body, or else with an identity
    /// provider's token in the header.
    @Sendable func signIn(_ exchange: Exchange) async throws -> Answer {
        try attempts.take(exchange.remoteAddress)
        let format = try exchange.answerFormat
        let message = try await exchange.readMessage(WireSignIn.self)
        let credential = Secret.random(prefix: Secret.devicePrefix)
        let device = newDevice(displayName: message.deviceName, credential)
        let signedIn: SignedIn
        do {
            signedIn =
                if !message.request.isEmpty {
                    try await signIn(device, byRequest: message.request)
                } else if message.code.isEmpty, let token = exchange.bearer {
                    try await signIn(device, byToken: token)
                } else {
                    try await signIn(device, byCode: message.code, naming: message.accountName)
                }
        } catch {
            if Problem(error).status == .unauthorized {
                failures.count(exchange.remoteAddress, now: settings.clock.now())
            }
            throw error
        }
        firstRun.end()
        let answer = WireSignInAnswer(signedIn.account, signedIn.device, credential: credential)
        return Answer(answer, format)
    }

    private typealias SignedIn = (account: Account, device: Device)

    /// - Parameter name: The name of the first account, which the code makes; empty for another code.
    private func signIn(
        _ device: NewDevice, byCode text: String, naming name: String
    ) async throws -> SignedIn {
        guard let code = TypedCode(typed: text, .signIn) else { throw StorageError.codeInvalid }
        let accountName = name.isEmpty ? nil : AccountName(name)
        guard name.isEmpty || accountName != nil else {
            throw Problem.malformed("\"accountName\": \(AccountName.rule).")
        }
        let now = settings.clock.now()
        return try await writer.run { [storage] in
            try storage.redeem(code.hash, by: device, naming: accountName, now: now)
        }
    }

    private func signIn(_ device: NewDevice, byRequest secret: String) async throws -> SignedIn {
        let now = settings.clock.now()
        return try await writer.run { [storage] in
            try storage.redeem(request: SecretHash(of: secret), by: device, now: now)
        }
    }

    private func signIn(_ device: NewDevice, byToken token: String) async throws -> SignedIn {
        guard let identities else { throw TokenError.noProvider }
        let proof = try await identities.proof(in: token)
        let now = settings.clock.now()
        var device = device
        device.expiresMilliseconds = identities.settings.credentialSeconds.map { now + $0 * 1_000 }
        return try await writer.run { [storage, device, settings] in
            try storage.signIn(
                proof.identity, preferredName: proof.accountName.flatMap(AccountName.init),
                accountsMax: settings.accountsMax, by: device, now: now)
        }
    }

    private func newDevice(displayName: String, _ credential: String) -> NewDevice {
        NewDevice(
            displayName: DeviceDisplayName.ofNewDevice(displayName),
            credential: SecretHash(of: credential),
            devicesPerAccountMax: ServerConstants.devicesPerAccountMax)
    }

    /// The size that a rename counts as: it waits for the disk by itself, while many pushes share
    /// one wait.
    private static let renameBytes = 32 * Allowance.bytesPerToken

    /// A confined device only sees itself.
    @Sendable func show(
        _ exchange: Exchange, _ rights: DeviceRights
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        let (account, devices) = try await readers.run(for: rights.account) { [storage] in
            (try storage.account(rights.account), try storage.devices(of: rights.account))
        }
        guard let account else { throw AccessRefusal.credentialInvalid }
        let shown = devices.filter { !rights.isConfined || $0.reference == rights.reference }
        return Answer(WireAccount(account, shown), format)
    }

    @Sendable func erase(
        _ exchange: Exchange, _ rights: DeviceRights
    ) async throws -> Answer {
        let now = settings.clock.now()
        let isErased = try await writer.run(for: rights.account) { [storage] in
            try StorageError.ofDevice {
                try storage.erase(rights.account, now: now, by: .device(rights.reference.id))
            }
        }
        revocation.accountChanged(rights.account)
        guard isErased else { throw AccessRefusal.credentialInvalid }
        return Answer(.noContent)
    }

    @Sendable func listDevices(
        _ exchange: Exchange, _ rights: DeviceRights
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        let devices = try await readers.run(for: rights.account) { [storage] in
            try storage.devices(of: rights.account)
        }
        return Answer(WireDeviceList(devices), format)
    }

    @Sendable func showDevice(
        _ exchange: Exchange, _ rights: DeviceRights,
        _ device: DeviceReference
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        return Answer(WireDevice(try await find(device)), format)
    }

    @Sendable func renameDevice(
        _ exchange: Exchange, _ rights: DeviceRights,
        _ device: DeviceReference
    ) async throws -> Answer {
        try allowance.take(rights)
        allowance.charge(bytes: Self.renameBytes, rights)
        let format = try exchange.answerFormat
        let displayName = try await exchange.readTitle()
        // Receiving the body may have taken two minutes.
        try await gate.checkAgain(exchange.bearer, .device(device.id))
        let now = settings.clock.now()
        let isRenamed = try await writer.run(for: rights.account) { [storage] in
            try StorageError.ofDevice {
                try storage.rename(
                    device, displayName: displayName, now: now, by: .device(rights.reference.id))
            }
        }
        guard isRenamed else { throw StorageError.noSuchDevice }
        return Answer(WireDevice(try await find(device)), format)
    }

    @Sendable func revokeDevice(
        _ exchange: Exchange, _ rights: DeviceRights,
        _ device: DeviceReference
    ) async throws -> Answer {
        let now = settings.clock.now()
        let revoked = try await writer.run(for: rights.account) { [storage] in
            try StorageError.ofDevice {
                try storage.revoke(device, now: now, by: .device(rights.reference.id))
            }
        }
        guard !revoked.isEmpty else { throw StorageError.noSuchDevice }
        revocation.revoked(revoked)
        return Answer(.noContent)
    }

    private func find(_ device: DeviceReference) async throws -> Device {
        try await readers.run(for: device.account) { [storage] in
            try storage.existingDevice(device)
        }
    }
}
