// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore
package import UbiquityWire

/// Requests with which devices seal their account. All throw ``LinkFailure``.
extension AccountClient {
    /// The mark of the account on its server.
    package static func sealing(
        _ account: SignedInAccount
    ) async throws(LinkFailure) -> ServerSealing {
        try await ServerRequest(.get, ["sealing"], of: account)
            .answer(WireSealing.self, isList: true) { ServerSealing($0) }
    }

    /// Seals the account with the current generation of these keys, or gives it another recovery key.
    /// - Parameters:
    ///   - wrap: The keys, sealed with the recovery key.
    ///   - present: The generation of the account's mark; 0 if it is not sealed.
    /// - Throws: ``LinkFailure`` with the code `sealed` if another device was faster, with `proof` if
    ///   the keys do not have the account's present one, and of the kind `refused` for the keys of a
    ///   confined device.
    package static func seal(
        _ keyring: Keyring, recovery wrap: [UInt8], after present: UInt32,
        _ account: SignedInAccount
    ) async throws(LinkFailure) {
        guard let check = keyring.check else {
            throw LinkFailure(
                .refused, "this device may use some stores only, and cannot seal the account")
        }
        var body = WireSealing()
        body.generation = keyring.current
        body.check = Data(check.bytes)
        body.recovery = Data(wrap)
        var request = try ServerRequest(
            .put, ["sealing"], of: account, body: WireFormat.protobuf.encode(body))
        request.proof = keyring.proof(of: present)
        try await request.done()
    }

    /// Deletes all values of the account and the mark that it is sealed: at once with the present key,
    /// and without it in a week, unless a device with the key is heard of before.
    /// - Parameter proof: Of the present key; nil without it.
    /// - Throws: ``LinkFailure``, of the kind `sealed` if the account is not sealed.
    package static func resetSealing(
        _ account: SignedInAccount, proof: Bytes32?
    ) async throws(LinkFailure) {
        var request = try ServerRequest(.delete, ["sealing"], of: account)
        request.proof = proof
        try await request.done()
    }

    // MARK: Handovers

    /// Leaves something for the device of the account that has the secret.
    /// - Throws: Also of the kind `tooLarge`, for the keys of very many stores.
    package static func leave(
        _ handover: Handover, with secret: HandoverSecret, _ account: SignedInAccount
    ) async throws(LinkFailure) {
        var body = WireHandover()
        do throws(KeyringRefusal) {
            body.box = Data(try handover.sealed(of: account.account, with: secret))
        } catch { throw LinkFailure(.tooLarge, error.description) }
        try await ServerRequest(
            .put, handoverPath(secret, account), of: account,
            body: WireFormat.protobuf.encode(body)
        ).done()
    }

    /// What another device has left.
    /// - Returns: Nil if there is nothing, or nothing that the secret opens.
    package static func handover(
        with secret: HandoverSecret, _ account: SignedInAccount
    ) async throws(LinkFailure) -> Handover? {
        do throws(LinkFailure) {
            return try await ServerRequest(.get, handoverPath(secret, account), of: account)
                .answer(WireHandover.self) { wire in
                    Handover([UInt8](wire.box), of: account.account, with: secret)
                }
        } catch {
            guard error.code == ProblemCode.notFound.rawValue else { throw error }
            return nil
        }
    }

    /// Waits until another device has left keys for the one that shows a code with the secret. Asks
    /// the server every other second, also while it cannot be reached.
    /// - Throws: ``KeyringRefusal/noKeys`` if none has within the 15 minutes for which the server would
    ///   keep them; ``LinkFailure``; `CancellationError`.
    package static func awaitKeys(
        with secret: HandoverSecret, _ account: SignedInAccount
    ) async throws -> Keyring {
        let end = ContinuousClock.now + .milliseconds(HandoverShelf.keptMilliseconds)
        while ContinuousClock.now < end {
            do throws(LinkFailure) {
                if case .keys(let keys)? = try await handover(with: secret, account) { return keys }
            } catch {
                switch error.kind {
                case .unreachable, .timedOut, .busy: break
                default: throw error
                }
            }
            try await Task.sleep(for: .seconds(2))
        }
        throw KeyringRefusal.noKeys
    }

    private static func handoverPath(
        _ secret: HandoverSecret, _ account: SignedInAccount
    ) -> [String] {
        ["handovers", HandoverName(of: secret, in: account.account).text]
    }

    // MARK: Stores

    /// A whole store as it is, whatever it is sealed with.
    /// - Parameter generation: That of the account's key.
    package static func wholeStore(
        _ store: StoreIdentifier, generation: UInt32, _ account: SignedInAccount
    ) async throws(LinkFailure) -> ChangeSet {
        var request = try ServerRequest(
            .get, wholePath(store), query: query(generation), of: account)
        request.bounds = IntakeLimits(nil).message
        return try await request.answer(WireChanges.self) {
            wire throws(WireError) in try ChangeSet(wire)
        }
    }

    /// Replaces a whole store, and its history.
    /// - Parameters:
    ///   - records: All of them, sealed with the current generation of these keys.
    ///   - cursor: That of the store as it was read.
    /// - Throws: ``LinkFailure`` with the code `store-changed` if the store is no longer at the cursor,
    ///   and with `proof` if the keys do not have the account's, as a confined device's never have.
    package static func replace(
        _ store: StoreIdentifier, by records: [Record], at cursor: Cursor, keyring: Keyring,
        _ account: SignedInAccount
    ) async throws(LinkFailure) {
        var body = WireWholeStore()
        body.cursor = cursor.text
        body.generation = keyring.current
        body.records = records.map(WireRecord.init)
        var request = try ServerRequest(
            .put, wholePath(store), query: query(keyring.current), of: account,
            body: WireFormat.protobuf.encode(body))
        request.proof = keyring.proof(of: keyring.current)
        try await request.done()
    }

    /// A store as this device can read it. Boxes that its keys do not open stay.
    /// - Parameter keyring: The device's keys; nil for an account that is not sealed.
    package static func store(
        _ store: StoreIdentifier, _ account: SignedInAccount, _ keyring: Keyring?
    ) async throws(LinkFailure) -> ChangeSet {
        let link = HTTPTransport(store, of: account, keyring, generation: keyring?.current ?? 0)
        let changes = try await link.pull(since: nil)
        guard let keyring else { return changes }
        return try opened(store, by: keyring) { sealer throws(SealingFault) in
            try sealer.open(changes, within: IntakeLimits(nil).message)
        }
    }

    /// A page of a store's history, as this device can read it.
    /// - Parameters:
    ///   - place: The ``HistoryPage/next`` of the page before; nil for the first one.
    ///   - keyring: The device's keys; nil for an account that is not sealed.
    package static func history(
        of store: StoreIdentifier, from place: String?, _ account: SignedInAccount,
        _ keyring: Keyring?
    ) async throws(LinkFailure) -> HistoryPage {
        let link = HTTPTransport(store, of: account, keyring, generation: keyring?.current ?? 0)
        let page = try await withCheckedContinuation { continuation in
            link.history(of: nil, from: place, max: 1_000) { continuation.resume(returning: $0) }
        }.get()
        guard let keyring else { return page }
        return try opened(store, by: keyring) { sealer throws(SealingFault) in
            try sealer.open(page, within: IntakeLimits(nil).message)
        }
    }

    private static func opened<Opened>(
        _ store: StoreIdentifier, by keyring: Keyring,
        _ open: (Sealer) throws(SealingFault) -> Opened
    ) throws(LinkFailure) -> Opened {
        let sealer = try keyring.neededSealer(of: store)
        do throws(SealingFault) { return try open(sealer) } catch {
            throw LinkFailure(error)
        }
    }

    private static func wholePath(_ store: StoreIdentifier) -> [String] {
        ["stores", store.string, "whole"]
    }

    private static func query(_ generation: UInt32) -> [(name: String, value: String)] {
        [(name: "generation", value: "\(generation)")]
    }
}

extension Keyring {
    /// - Throws: ``LinkFailure`` of the kind `refused` if the device has no key of the store.
    func neededSealer(of store: StoreIdentifier) throws(LinkFailure) -> Sealer {
        guard let sealer = sealer(of: store) else {
            throw LinkFailure(.refused, "this device has no key of the store \(store.string)")
        }
        return sealer
    }
}

/// The mark that an account is sealed, as reported by its server.
package struct ServerSealing: Hashable, Sendable {
    /// The number of the account's key; 0 if the account is not sealed.
    package var generation: UInt32
    /// Nil if the account is not sealed.
    package var check: Bytes32?
    /// The keys, sealed with the recovery key; empty for a confined device.
    package var recovery: [UInt8]
    /// The stores that are not sealed with this key yet, of those that the device may see. What is no
    /// identifier of a store is left out.
    package var unsealed: [StoreIdentifier]
    /// When all values are removed, because a device without the key has asked for that, in
    /// milliseconds since 1970; nil if none has.
    package var ends: Int64?
    /// The device that has sealed the account with this key; nil if it is not sealed, and for a
    /// confined device.
    package var author: SealingState.Author?

    package init(_ wire: WireSealing) {
        generation = wire.generation
        check = Bytes32(wire.check)
        recovery = [UInt8](wire.recovery)
        unsealed = wire.unsealed.compactMap { try? StoreIdentifier($0) }
        ends = wire.endsMilliseconds > 0 ? Int64(wireMilliseconds: wire.endsMilliseconds) : nil
        author = DeviceID(wire.sealedBy).map { device in
            SealingState.Author(
                device: device, name: wire.sealedByName,
                milliseconds: Int64(wireMilliseconds: wire.sealedMilliseconds))
        }
    }
}
