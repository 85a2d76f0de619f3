// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Synchronization
internal import Ubiquity

/// The mirrors of this process and their keys. Two mirrors on one key would each take the other's
/// writes for changes of the app.
///
/// Shared state: `state`, guarded by its mutex, because mirrors come and go on any thread.
final class MirrorClaims: Sendable {
    static let shared = MirrorClaims()

    private struct Claim {
        var domain: DefaultsDomain
        var store: String
        var keys: KeySelection

        func meets(_ other: Claim) -> Bool { domain == other.domain || store == other.store }
    }

    private struct State {
        var claims: [Int: Claim] = [:]
        var made = 0
        /// One for each domain that ever had a mirror.
        var rounds: [DefaultsDomain: DispatchGroup] = [:]
    }

    private let state = Mutex(State())

    /// - Throws: `UbiquityError` if another mirror has one of the keys.
    func claim(_ domain: DefaultsDomain, _ store: String, _ keys: KeySelection) throws -> Int {
        try state.withLock { state in
            let claim = Claim(domain: domain, store: store, keys: keys)
            for other in state.claims.values where other.meets(claim) {
                guard let key = other.keys.overlap(with: keys) else { continue }
                throw UbiquityError(
                    .refused,
                    "another mirror already has the key \"\(key)\" of these preferences or this "
                        + "store")
            }
            state.made += 1
            state.claims[state.made] = claim
            return state.made
        }
    }

    /// Whether an earlier mirror has the key too.
    func isTaken(_ name: String, from number: Int) -> Bool {
        state.withLock { state in
            guard state.claims.count > 1, let own = state.claims[number] else { return false }
            return state.claims.contains { other, claim in
                other < number && claim.meets(own) && claim.keys.policy(of: name) != nil
            }
        }
    }

    /// The group that a comparison of these preferences enters, and leaves at its end.
    func rounds(of domain: DefaultsDomain) -> DispatchGroup {
        state.withLock { state in
            if let rounds = state.rounds[domain] { return rounds }
            let rounds = DispatchGroup()
            state.rounds[domain] = rounds
            return rounds
        }
    }

    /// Waits for the comparisons of these preferences under way: a mirror that was stopped a moment
    /// ago may not have written its baselines yet.
    ///
    /// Waits for at most a second: where preferences report their changes, such a comparison may
    /// wait for the calling thread.
    func waitForRounds(of domain: DefaultsDomain) {
        _ = rounds(of: domain).wait(timeout: .now() + .seconds(1))
    }

    func release(_ number: Int) { state.withLock { $0.claims[number] = nil } }
}
