// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// The requests by which a person who is signed in signs in a further device: codes that a device
/// makes, and requests of devices without a code (as in RFC 8628), which a device or the operator
/// approves.
struct PairingRoutes: Sendable {
    let storage: any AccountStorage & PairingStorage
    let writer: BlockingThreads
    let readers: BlockingThreads
    var gate: Gate
    let attempts: SignInThrottle
    /// Nil if devices do not see it.
    let tls: TLSIdentity?
    let settings: ServerSettings

    private var now: Int64 { settings.clock.now() }

    /// Makes a code with at most the device's own rights.
    @Sendable func newCode(
        _ exchange: Exchange, _ rights: DeviceRights
    ) async throws -> Answer {
        try attempts.take(exchange.remoteAddress, rights)
        let format = try exchange.answerFormat
        let message = try await exchange.readMessage(orNone: WireNewCode.self)
        let asked = try CredentialTerms(message.stores, seconds: message.credentialSeconds)
        let seconds = try settings.codeSeconds(
            message.codeSeconds, max: settings.constants.signInCodeSeconds, of: "a device's code")
        // Receiving the body may have taken two minutes.
        try await gate.checkAgain(exchange.bearer, .makeOwnCode(asked.stores))
        let now = now
        let invitation = try await writer.run(for: rights.account) { [storage] in
            try StorageError.ofDevice {
                guard let account = try storage.account(rights.account) else {
                    throw StorageError.noSuchAccount
                }
                return try storage.invite(
                    to: account, rights.limiting(asked), seconds: seconds, now: now,
                    by: .device(rights.reference.id))
            }
        }
        let server = settings.reachedAddress.flatMap {
            PlainHTTPRule.obstacle(at: $0) == nil ? $0 : nil
        }
        var answer = WireNewAccountAnswer(invitation, server: server, pin: tls?.pin)
        answer.others = settings.otherAddresses(port: settings.port).map(\.address)
        return Answer(answer, format)
    }

    // MARK: Requests of devices without a code

    @Sendable func ask(_ exchange: Exchange) async throws -> Answer {
        try attempts.take(exchange.remoteAddress)
        let format = try exchange.answerFormat
        let message = try await exchange.readMessage(WireNewSignInRequest.self)
        let terms = try CredentialTerms(message.stores, seconds: message.credentialSeconds)
        let secret = Secret.random(prefix: Secret.requestPrefix)
        let userCode = TypedCode.random(.user)
        let now = now
        let new = SignInRequest(
            secret: SecretHash(of: secret), userCode: userCode.hash,
            displayName: DeviceDisplayName.ofNewDevice(message.deviceName),
            address: exchange.remoteAddress, terms: terms,
            expiresMilliseconds: now + PairingRule.requestMilliseconds)
        try await writer.run { [storage] in try storage.addRequest(new, now: now) }
        return Answer(WireNewSignInRequestAnswer(new, secret, userCode), format)
    }

    @Sendable func show(
        _ exchange: Exchange, _ caller: Caller
    ) async throws -> Answer {
        let format = try exchange.answerFormat
        let code = try userCode(exchange, caller)
        let now = now
        let found = try await readers.run { [storage] in
            try storage.request(userCode: code.hash, now: now)
        }
        guard let found else { throw StorageError.noSuchRequest }
        return Answer(WireSignInRequest(found), format)
    }

    @Sendable func approve(
        _ exchange: Exchange, _ caller: Caller
    ) async throws -> Answer {
        let code = try userCode(exchange, caller)
        let message = try await exchange.readMessage(orNone: WireApproval.self)
        let asked = try CredentialTerms(message.stores, seconds: message.credentialSeconds)
        try await gate.checkAgain(exchange.bearer, .approveSignIn(asked.stores))
        guard case .device(let rights) = caller else {
            guard let name = AccountName(message.account) else {
                throw Problem.malformed("\"account\": \(AccountName.rule).")
            }
            let account = try await readers.run { [storage] in try storage.existingAccount(name) }
            return try await decide(code, .approved(account.id, asked), caller)
        }
        guard message.account.isEmpty else {
            throw Problem.malformed("\"account\" is for the operator only.")
        }
        return try await decide(code, .approved(rights.account, rights.limiting(asked)), caller)
    }

    @Sendable func deny(
        _ exchange: Exchange, _ caller: Caller
    ) async throws -> Answer {
        let code = try userCode(exchange, caller)
        return try await decide(code, .denied(caller.rights?.account), caller)
    }

    private func decide(
        _ code: TypedCode, _ decision: SignInDecision, _ caller: Caller
    ) async throws -> Answer {
        let (now, actor) = (now, actor(caller))
        try await writer.run { [storage] in
            try StorageError.ofDevice {
                try storage.decide(code.hash, decision, now: now, by: actor)
            }
        }
        return Answer(.noContent)
    }

    private func actor(_ caller: Caller) -> AuditActor {
        if case .device(let rights) = caller { return .device(rights.reference.id) }
        return gate.operatorActor
    }

    /// The user code in the address. Each look-up may be a guess.
    /// - Throws: ``StorageError/noSuchRequest``, also for text that cannot be a code.
    private func userCode(_ exchange: Exchange, _ caller: Caller) throws -> TypedCode {
        try attempts.take(exchange.remoteAddress, caller.rights)
        guard let code = TypedCode(typed: try exchange.text("code"), .user) else {
            throw StorageError.noSuchRequest
        }
        return code
    }
}

extension StorageError {
    /// The body's act of a device, unless it was signed out in the meantime.
    /// - Throws: ``AccessRefusal/credentialInvalid`` if so.
    static func ofDevice<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch StorageError.noSuchDevice {
            throw AccessRefusal.credentialInvalid
        }
    }
}

extension Caller {
    /// Nil for the operator.
    fileprivate var rights: DeviceRights? {
        if case .device(let rights) = self { rights } else { nil }
    }
}

extension CredentialTerms {
    /// The maximum for a credential: about 100 years.
    private static let secondsMax: UInt64 = 100 * 366 * 86_400

    /// The rights in a message.
    /// - Parameter seconds: 0 for as long as possible.
    init(_ stores: [String], seconds: UInt64) throws(Problem) {
        guard stores.count <= Self.storesMax else {
            throw .malformed(
                "\"stores\": a credential can be confined to at most \(Self.storesMax).")
        }
        guard seconds <= Self.secondsMax else {
            throw .malformed(
                "\"credentialSeconds\": a credential can be valid for at most 100 years.")
        }
        var identifiers: Set<StoreIdentifier> = []
        for (index, text) in stores.enumerated() {
            do { identifiers.insert(try StoreIdentifier(text)) } catch {
                throw .malformed("stores[\(index)]: \(error).")
            }
        }
        self.init(
            stores: identifiers.isEmpty ? nil : identifiers,
            milliseconds: seconds == 0 ? nil : Int64(seconds) * 1_000)
    }
}

extension ServerSettings {
    /// Returns how long a code is to be valid.
    /// - Parameters:
    ///   - asked: 0 for as long as the settings say.
    ///   - subject: The code, for the error.
    func codeSeconds(_ asked: UInt64, max: Int64, of subject: String) throws(Problem) -> Int64 {
        guard asked <= max else {
            throw .malformed(
                "\"codeSeconds\": \(subject) can be valid for at most \(max) seconds.")
        }
        return asked == 0 ? constants.signInCodeSeconds : Int64(asked)
    }
}

extension WireNewSignInRequestAnswer {
    fileprivate init(_ request: SignInRequest, _ secret: String, _ userCode: TypedCode) {
        self.init()
        self.request = secret
        self.userCode = userCode.text
        expiresMilliseconds = UInt64(clamping: request.expiresMilliseconds)
        intervalSeconds = PairingRule.pollSeconds
    }
}

extension WireSignInRequest {
    fileprivate init(_ request: SignInRequest) {
        self.init()
        deviceName = request.displayName
        address = request.address
        stores = request.terms.stores.sortedTexts
        credentialSeconds = UInt64(clamping: (request.terms.milliseconds ?? 0) / 1_000)
        expiresMilliseconds = UInt64(clamping: request.expiresMilliseconds)
    }
}
