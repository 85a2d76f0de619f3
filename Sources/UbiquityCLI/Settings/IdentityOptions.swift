// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore
import UbiquityServer

/// The identity provider whose tokens sign devices in, if there is one.
struct IdentityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Accept tokens (JSON Web Tokens) from this identity provider for signing in.",
            discussion: "Exactly as its tokens say it in \"iss\".", valueName: "issuer"),
        transform: notEmpty)
    var identityIssuer: String?

    @Option(
        help: ArgumentHelp(
            "The audience that tokens must be issued for. May be given several times.",
            discussion:
                "As tokens say it in \"aud\": the identifier that the provider has for your app.",
            valueName: "audience"), transform: notEmpty)
    var identityAudience: [String] = []

    @Option(
        help: ArgumentHelp(
            "Let people also sign in to the page with the provider, as this client of it.",
            discussion:
                "A public client, without a secret, whose redirect URI is the page's address. It "
                + "is an audience too.", valueName: "identifier"), transform: notEmpty)
    var identityClient: String?

    @Option(
        help: ArgumentHelp(
            "The provider's public keys: the address of a set of JSON Web Keys, or a file.",
            discussion: "An address begins with https://.", valueName: "url-or-file"),
        completion: .file(), transform: notEmpty)
    var identityKeys: String?

    @Option(
        help: ArgumentHelp(
            "The claim that names the account. (default: sub)",
            discussion: "Choose a claim that a person cannot change and nobody else can get.",
            valueName: "claim"), transform: notEmpty)
    var identityClaim: String?

    @Option(
        help: ArgumentHelp(
            "The claim for the name of a new account. (default: preferred_username)",
            valueName: "claim"), transform: notEmpty)
    var identityNameClaim: String?

    @Option(
        help: ArgumentHelp(
            "Days after which a device must present a new token. (default: never)",
            valueName: "number"))
    var identityDays: Int?

    func validate() throws {
        guard let identityIssuer else {
            return try refuse(
                given(
                    ("--identity-audience", !identityAudience.isEmpty),
                    ("--identity-client", identityClient != nil),
                    ("--identity-keys", identityKeys != nil),
                    ("--identity-claim", identityClaim != nil),
                    ("--identity-name-claim", identityNameClaim != nil),
                    ("--identity-days", identityDays != nil)),
                "without --identity-issuer.")
        }
        guard !identityIssuer.isEmpty, identityKeys != nil, !audiences.isEmpty else {
            throw ValidationError(
                "--identity-issuer needs --identity-audience or --identity-client, and "
                    + "--identity-keys.")
        }
        guard identityClient == nil || page != nil else {
            throw ValidationError(
                "--identity-client needs an --identity-issuer that is an address, which begins "
                    + "with https://.")
        }
        guard identityDays.map({ (1...36_500).contains($0) }) ?? true else {
            throw ValidationError("--identity-days needs a number from 1 to 36500.")
        }
        _ = try keys
    }

    /// Nil if there is none.
    var settings: IdentitySettings? {
        get throws {
            guard let identityIssuer, let keys = try keys else { return nil }
            var rule = IdentityRule(issuer: identityIssuer, audiences: audiences)
            if let identityClaim { rule.subjectClaim = identityClaim }
            if let identityNameClaim { rule.nameClaim = identityNameClaim }
            return IdentitySettings(
                rule: rule, keys: keys, credentialSeconds: identityDays.map { Int64($0) * 86_400 },
                page: page)
        }
    }

    private var audiences: Set<String> {
        Set(identityAudience + [identityClient].compactMap(\.self))
    }

    private var page: PageProvider? {
        guard let identityIssuer, let identityClient else { return nil }
        return PageProvider(issuer: identityIssuer, client: identityClient)
    }

    private var keys: IdentitySettings.Keys? {
        get throws {
            guard let identityKeys else { return nil }
            guard identityKeys.contains("://") else {
                return .file(DataOptions.expanded(identityKeys))
            }
            guard identityKeys.lowercased().hasPrefix("https://") else {
                throw ValidationError(
                    "--identity-keys needs an address that begins with https://, or a file: keys "
                        + "fetched over plain HTTP could be anybody's.")
            }
            return .address(identityKeys)
        }
    }
}
