// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// The mark of a sealed account, and the sealing of its stores.
struct SealingRoutes: Sendable {
    let storage: any ServerStorage
    let writer: BlockingThreads
    let readers: BlockingThreads
    let gate: Gate
    let revocation: Revocation
    let allowance: PushAllowance
    /// The budget for bodies.
    let shares: AccountShares
    let settings: ServerSettings

    // MARK: The mark

    /// A confined device does not get the account's keys, and only sees its stores.
    @Sendable func show(_ exchange: Exchange, _ rights: DeviceRights) async throws -> Answer {
        let format = try exchange.answerFormat
        let (account, stores) = try await readers.run(for: rights.account) { [storage] in
            (try storage.account(rights.account), try storage.stores(of: rights.account))
        }
        guard let account else { throw AccessRefusal.credentialInvalid }
        var sealing = WireSealing(account.sealing, isConfined: rights.isConfined)
        sealing.unsealed = stores.filter { store in
            rights.reaches(store.identifier)
                && store.contentGeneration.map { $0 != sealing.generation } ?? false
        }.map(\.identifier.string)
        return Answer(sealing, format)
    }

    @Sendable func seal(_ exchange: Exchange, _ rights: DeviceRights) async throws -> Answer {
        let mark = try AccountSealing(try await exchange.readMessage(WireSealing.self))
        return try await write(exchange, rights) { storage, proof, now, actor in
            try storage.seal(rights.account, with: mark, proof: proof, now: now, by: actor)
        }
    }

    @Sendable func reset(_ exchange: Exchange, _ rights: DeviceRights) async throws -> Answer {
        try await write(exchange, rights) { storage, proof, now, actor in
            try storage.reset(rights.account, proof: proof, now: now, run: nil, by: actor)
        }
    }

    /// Ends all streams of the account if anything changes: its devices come back with the key that
    /// they have.
    /// - Parameter body: Returns whether anything has changed.
    private func write(
        _ exchange: Exchange, _ rights: DeviceRights,
        _ body:
            @escaping @Sendable (any ServerStorage, Bytes32?, Int64, AuditActor) throws -> Bool
    ) async throws -> Answer {
        try allowance.take(rights)
        let proof = try exchange.request.headers.keyProof
        // Receiving the body may have taken two minutes.
        try await gate.checkAgain(exchange.bearer, .wholeAccount)
        let now = settings.clock.now()
        let isChange = try await writer.run(for: rights.account) { [storage] in
            try StorageError.ofDevice {
                try body(storage, proof, now, .device(rights.reference.id))
            }
        }
        if isChange { revocation.accountChanged(rights.account) }
        return Answer(.noContent)
    }

    /// Withdraws an announced reset, later. If it fails, the next request of a device with the key makes
    /// up for it.
    @Sendable func withdrawReset(_ rights: DeviceRights, _ proof: Bytes32) {
        let now = settings.clock.now()
        _ = writer.submit { [storage, revocation] in
            try? storage.withdrawReset(
                rights.account, proof: proof, now: now, by: .device(rights.reference.id))
            revocation.authenticator.invalidate(rights.account)
        }
    }

    // MARK: Handovers

    @Sendable func handOver(_ exchange: Exchange, _ rights: DeviceRights) async throws -> Answer {
        try allowance.take(rights)
        let name = try handoverName(exchange)
        let message = try await exchange.readMessage(
            WireHandover.self, bytesMax: 2 * Handover.bytesMax)
        guard !message.box.isEmpty, message.box.count <= Handover.bytesMax else {
            throw Problem.malformed(
                "\"box\" must have 1 to \(Handover.bytesMax) bytes.")
        }
        allowance.charge(bytes: message.box.count, rights)
        // Receiving the body may have taken two minutes.
        try await gate.checkAgain(exchange.bearer, .itself)
        let now = settings.clock.now()
        try await writer.run(for: rights.account) { [storage] in
            try StorageError.ofDevice {
                try storage.keep(
                    [UInt8](message.box), as: name, by: rights.reference,
                    isConfined: rights.isConfined, now: now)
            }
        }
        return Answer(.noContent)
    }

    @Sendable func takeOver(_ exchange: Exchange, _ rights: DeviceRights) async throws -> Answer {
        let format = try exchange.answerFormat
        let name = try handoverName(exchange)
        let now = settings.clock.now()
        let box = try await readers.run(for: rights.account) { [storage] in
            try storage.handover(name, of: rights.account, now: now)
        }
        guard let box else {
            throw Problem(.notFound, "The account has no such handover, or no longer.")
        }
        var message = WireHandover()
        message.box = Data(box)
        return Answer(message, format)
    }

    private func handoverName(_ exchange: Exchange) throws(Problem) -> HandoverName {
        guard let name = HandoverName(text: try exchange.text("id")) else {
            throw .malformed("A handover has 32 lowercase hexadecimal digits.")
        }
        return name
    }

    // MARK: A whole store

    @Sendable func replace(
        _ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference
    ) throws {
        try allowance.take(rights)
        let format = try exchange.bodyFormat
        let answerFormat = try exchange.answerFormat
        let proof = try exchange.request.headers.keyProof
        let bounds = IntakeLimits(rights.limits.applied(to: settings.limits)).message
        let permit = try shares.take(rights)
        exchange.readBody(bytesMax: bounds.bytes, permit: permit) { [self] body in
            exchange.attempt {
                let body = try body.get().bytes
                allowance.charge(bytes: body.count, rights)
                readers.run(
                    slicesFor: rights.account,
                    {
                        guard format.hasAtMost(bounds.elements, in: body, WireWholeStore.self)
                        else {
                            throw Problem(
                                .bodyTooLarge,
                                "A store may have at most \(bounds.elements) elements.",
                                at: .bodyTooLarge)
                        }
                        return Optional.some(
                            try WholeStore(try format.decode(WireWholeStore.self, from: body)))
                    },
                    then: exchange.callback { whole in
                        exchange.answer { [self] in
                            defer { permit.end() }
                            var whole = whole
                            whole.proof = proof
                            return try await replace(
                                exchange, rights, store, by: whole, answerFormat)
                        }
                    })
            }
        }
    }

    private func replace(
        _ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference,
        by whole: WholeStore, _ format: WireFormat
    ) async throws -> Answer {
        try await gate.checkAgain(exchange.bearer, .store(store.identifier))
        let now = settings.clock.now()
        let rules = CommitRules(
            admission: PushAdmission(
                limits: settings.limits, now: now, history: settings.history),
            storesPerAccountMax: settings.constants.storesPerAccountMax)
        let position = try await writer.run(for: rights.account) { [storage] in
            try storage.replace(store, by: whole, rights: rights, rules: rules).get()
        }
        revocation.hub.end { $0.store == store }
        let answer = ChangeSet(
            records: [], cursor: position.cursor, serverMilliseconds: now, isWhole: false)
        return Answer(WireChanges(answer), format)
    }
}
