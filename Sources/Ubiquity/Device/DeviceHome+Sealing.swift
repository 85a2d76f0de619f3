// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

/// How far the sealing of the account is that a device is signed in to.
package struct SealingProgress: Hashable, Sendable {
    package var account: SignedInAccount
    /// The device's keys; nil if it has none.
    package var keyring: Keyring?
    /// The keys that the device has proposed; nil if there is no proposal.
    package var proposal: Keyring?
    package var server: ServerSealing
    package var step: SealingStep

    init(_ account: SignedInAccount, _ state: DeviceState, _ server: ServerSealing) {
        self.account = account
        self.server = server
        (keyring, proposal) = (state.keyring, state.proposal)
        step = SealingStep.next(
            keyring: keyring, proposal: proposal, generation: server.generation,
            check: server.check, wasSealed: account.isSealed, unsealed: server.unsealed)
    }

    /// Whether the account is sealed with a key that this device does not have.
    package var isLocked: Bool { server.generation > 0 && step == .getKey }
}

/// The reason a store was not sealed.
package enum SealingError: Error, Hashable, Sendable {
    /// The device is signed in to another account by now, or to none.
    case signedOut
    /// None of the device's keys opens these values of the store.
    case unopened(StoreIdentifier, [Key])
    /// The server has what a sealed store does not have.
    case fault(StoreIdentifier, SealingFault)
    /// The device has no key of the store.
    case noKey(StoreIdentifier)
    /// The store changed whenever it was read.
    case restless(StoreIdentifier)
    /// The code of a sign-in says that the account is sealed, and there are no keys.
    case noHandover
    /// The account is not sealed, and the device has had one at its server that is.
    case notSealed
    /// The proposal is no longer the device's, because another program has gone on.
    case otherProposal
}

extension DeviceHome {
    /// - Throws: ``LinkFailure``, ``HomeError``, ``SealingError/signedOut``.
    package func sealing() async throws -> SealingProgress {
        guard let account = try load().signedIn else { throw SealingError.signedOut }
        let server = try await AccountClient.sealing(account)
        return SealingProgress(account, try state(of: account), server)
    }

    /// Does all that needs no person: keeps or drops the proposal, and seals the stores, one after the
    /// other. Any device with the key can do it, as often as it likes.
    /// - Parameters:
    ///   - finishing: Whether it seals what another device began to seal.
    ///   - drops: Whether values that no key of this device opens are left out, and so deleted.
    ///   - sealed: Called for each store that this device has sealed.
    /// - Returns: The progress, whose step needs a person, or is ``SealingStep/done``.
    /// - Throws: ``LinkFailure``, ``HomeError``, ``SealingError``.
    package func continueSealing(
        finishing: Bool = false, drops: Bool = false, sealed: (StoreIdentifier) -> Void = { _ in }
    ) async throws -> SealingProgress {
        var attempts = 0
        var done: Set<StoreIdentifier> = []
        while true {
            let progress = try await sealing()
            switch progress.step {
            case .adopt:
                try change(progress.account) { state in
                    if state.proposal == progress.proposal { state.adoptProposal() }
                }
            case .drop:
                try change(progress.account) { state in
                    if state.proposal == progress.proposal { state.proposal = nil }
                }
            case .seal(let store):
                guard finishing || progress.proposal != nil else { return progress }
                guard !done.contains(store) else { throw SealingError.restless(store) }
                if try await seal(store, progress, drops: drops) {
                    attempts = 0
                    done.insert(store)
                    sealed(store)
                    continue
                }
                // Others write, or seal it too.
                guard attempts < Self.attemptsMax else { throw SealingError.restless(store) }
                try await Task.sleep(for: .milliseconds(100 << min(attempts, 6)))
                attempts += 1
            case .propose, .mark, .done, .getKey, .restored: return progress
            }
        }
    }

    private static let attemptsMax = 20

    /// - Returns: False if it is to be read again.
    private func seal(
        _ store: StoreIdentifier, _ progress: SealingProgress, drops: Bool
    ) async throws -> Bool {
        let (account, generation) = (progress.account, progress.server.generation)
        guard let keyring = progress.keyring, let sealer = keyring.sealer(of: store) else {
            throw SealingError.noKey(store)
        }
        do {
            let found = try await AccountClient.wholeStore(
                store, generation: generation, account)
            let whole = try sealer.sealWhole(
                found.records, latest: SystemClock.reading().wall + Sealer.aheadMax,
                run: .random(in: .min ... .max))
            guard drops || whole.unopened.isEmpty else {
                throw SealingError.unopened(store, whole.unopened)
            }
            try await AccountClient.replace(
                store, by: whole.records, at: found.cursor, keyring: keyring, account)
            return true
        } catch let fault as SealingFault {
            throw SealingError.fault(store, fault)
        } catch let error as LinkFailure {
            switch error.kind {
            case .busy(let milliseconds):
                try await Task.sleep(for: .milliseconds(min(milliseconds, Self.pauseMax)))
            case .sealed: break
            default:
                guard error.code == "store-changed" else { throw error }
            }
            return false
        }
    }

    /// In milliseconds.
    private static let pauseMax: Int64 = 10_000

    // MARK: - Keys

    /// Makes the account's first key, or the next one, and keeps it as a proposal before the server is
    /// told.
    /// - Returns: The proposal; the one that is there already, if there is one. Nil for a confined
    ///   device.
    /// - Throws: ``HomeError``, ``SealingError/signedOut``.
    package func propose(_ account: SignedInAccount) throws -> Keyring? {
        guard let key = Bytes32([UInt8].random(Bytes32.count)) else { return nil }
        var proposal: Keyring?
        try change(account) { state in
            if state.proposal == nil {
                state.proposal = (state.keyring ?? Keyring([:])).adding(
                    key, at: SystemClock.reading().wall / 1_000)
            }
            proposal = state.proposal
        }
        return proposal
    }

    /// Seals the account with the proposal's mark.
    /// - Parameter wrap: The keys, sealed with a recovery key that was typed back.
    /// - Throws: ``LinkFailure``, as `AccountClient.seal`; ``HomeError``;
    ///   ``SealingError/otherProposal`` if the key is on this disk no longer, so that it would be lost.
    package func mark(
        _ proposal: Keyring, recovery wrap: [UInt8], _ account: SignedInAccount
    ) async throws {
        let state = try state(of: account)
        let isKept = [state.proposal, state.keyring].contains { keyring in
            keyring?.roots[proposal.current] == proposal.roots[proposal.current]
        }
        guard isKept else { throw SealingError.otherProposal }
        try await AccountClient.seal(
            proposal, recovery: wrap, after: proposal.previous ?? 0, account)
    }

    /// Joins keys that another device, or the recovery key, has given with those that this device has.
    /// The stores' programs take them at once. Asks for the account's mark, which may have changed
    /// since the keys were asked for.
    /// - Throws: ``LinkFailure``, ``KeyringRefusal``, ``HomeError``, ``SealingError/signedOut``, also if
    ///   the device has changed to another account meanwhile; nothing is changed.
    package func keep(_ keyring: Keyring, of account: SignedInAccount) async throws {
        let server = try await AccountClient.sealing(account)
        try keyring.check(generation: server.generation, check: server.check)
        try change(account) { try $0.keep(keyring) }
    }

    /// Waits until the programs that hold the connections of stores have taken the account's newest
    /// key, so that none of them sends anything in clear.
    /// - Returns: Those that have not, such as "notes (4711)".
    package func awaitKey(seconds: Double = 10) async throws -> [String] {
        let state = try load()
        guard let generation = state.keyring?.current else { return [] }
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            let behind = try storeFiles(in: state.folder).compactMap { file -> String? in
                let holder = LockHolder(of: ProcessLease.path(ofStore: file.path))
                guard let holder, let meta = try? StoreInspection(path: file.path).meta,
                    meta.generation < generation
                else { return nil }
                return holder.description
            }
            if behind.isEmpty || ContinuousClock.now > end { return behind }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// The keys that this device has of an account, regardless of what its server says of it; nil if it
    /// has none.
    /// - Throws: ``HomeError``, ``SealingError/signedOut``.
    package func keyring(of account: SignedInAccount) throws -> Keyring? {
        try state(of: account).keyring
    }

    private func state(of account: SignedInAccount) throws -> DeviceState {
        let state = try load()
        guard state.signedIn?.account == account.account else { throw SealingError.signedOut }
        return state
    }

    /// - Throws: ``SealingError/signedOut``, ``HomeError``, and what the body throws; then nothing is
    ///   changed.
    private func change(
        _ account: SignedInAccount, _ body: (inout DeviceState) throws -> Void
    ) throws {
        try update { state in
            guard state.signedIn?.account == account.account else { throw SealingError.signedOut }
            try body(&state)
        }
    }
}

extension [UInt8] {
    /// Bytes that nobody can guess.
    package static func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in generator.next() }
    }
}

extension TypedSecret {
    package static func random() -> Self {
        guard let secret = Self(.random(bytesCount)) else {
            preconditionFailure("A secret has as many bytes as it has.")
        }
        return secret
    }
}

extension SealingError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .signedOut: "this device is not signed in to the account any more"
        case .unopened(let store, let keys):
            "no key of this device opens \(keys.count == 1 ? "a value" : "\(keys.count) values") of the "
                + "store \(store.string), such as that of \"\(keys.first?.string ?? "")\", so the store "
                + "was not sealed; do it on a device that has been in the account for longer, or remove "
                + "them with `ubiquity encryption on --remove-unopened`"
        case .fault(let store, let fault):
            "the server has in the store \(store.string) what a sealed account does not have (\(fault)); "
                + "nothing was changed there"
        case .noKey(let store): "this device has no key of the store \(store.string)"
        case .restless(let store):
            "the store \(store.string) changed whenever it was read, or is said not to be sealed after "
                + "it was; try again later"
        case .noHandover:
            "the account's keys were not there, or no longer, so this device was not signed in; make "
                + "another code with `ubiquity pair`"
        case .otherProposal:
            "the account's key was changed by another program or device meanwhile, so the recovery key "
                + "that was shown here is of no use; run the command again"
        case .notSealed:
            "the account is not sealed, although this device has had a sealed one at this server, so it "
                + "was not signed in; if that is right, `ubiquity sign-in` asks and goes on"
        }
    }
}
