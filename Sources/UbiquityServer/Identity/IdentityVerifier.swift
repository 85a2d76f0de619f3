// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import JWTKit
internal import Logging
internal import UbiquityCore

/// Verifies tokens of an identity provider.
///
/// State: the keys, and when they were requested, guarded by the actor. Callers that need other
/// keys share one request.
actor IdentityVerifier {
    nonisolated let settings: IdentitySettings
    private let source: IdentityKeySource
    private let clock: ServerClock
    private let logger: Logger
    private var keys = JSONWebKeys.none
    private var refresh = KeyRefresh()
    private var loading: Task<Void, Never>?

    init(_ settings: IdentitySettings, clock: ServerClock, logger: Logger) {
        self.settings = settings
        source = IdentityKeySource(place: settings.keys)
        self.clock = clock
        self.logger = logger
    }

    /// - Throws: ``TokenError``, `IdentityRefusal`.
    func proof(in token: String) async throws -> IdentityProof {
        guard let header = TokenHeader(of: token) else { throw TokenError.malformed }
        let claims = try await claims(of: token, signedBy: try await key(for: header))
        return try settings.rule.proof(of: claims, now: clock.now())
    }

    private func claims(of token: String, signedBy key: JWK) async throws -> IdentityClaims {
        // A collection with one key. A shared collection would remember the algorithm of the first
        // token, whoever sent it, for a key that names no algorithm.
        do {
            return try await JWTKeyCollection().add(jwk: key).verify(token, as: TokenClaims.self)
                .claims
        } catch { throw TokenError.forged }
    }

    private func key(for header: TokenHeader) async throws -> JWK {
        if refresh.shouldAsk(knowsKey: keys.key(for: header) != nil, now: clock.uptime()) {
            startLoading()
        }
        await loading?.value
        guard refresh.areGood(now: clock.uptime()) else { throw TokenError.keysUnavailable }
        guard let key = keys.key(for: header) else { throw TokenError.forged }
        return key
    }

    private func startLoading() {
        guard loading == nil else { return }
        let now = clock.uptime()
        refresh.willAsk(now: now)
        loading = Task { await load(asked: now) }
    }

    private func load(asked: Int64) async {
        do throws(IdentityKeySource.Failure) {
            keys = try await source.load()
            refresh.hasLoaded(asked: asked)
        } catch {
            logger.warning(
                "The identity provider's keys could not be fetched.",
                metadata: ["reason": "\(error.reason)"])
        }
        loading = nil
    }
}

/// The reason a token could not be verified.
enum TokenError: Error, Hashable, Sendable {
    case malformed
    case forged
    /// The server accepts no tokens.
    case noProvider
    case keysUnavailable
}
