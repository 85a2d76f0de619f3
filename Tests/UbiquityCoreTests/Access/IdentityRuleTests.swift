// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

struct IdentityRuleTests {
    private static let now: Int64 = 1_000_000_000
    private let rule = IdentityRule(issuer: "https://id.example", audiences: ["app", "web"])

    private var good: IdentityClaims {
        IdentityClaims(
            issuer: "https://id.example", audiences: ["other", "web"], expires: 1_000_300,
            notBefore: 1_000_000, texts: ["sub": "u-1", "preferred_username": "ann"])
    }

    private func refusal(_ change: (inout IdentityClaims) -> Void) -> IdentityRefusal? {
        var claims = good
        change(&claims)
        do throws(IdentityRefusal) {
            _ = try rule.proof(of: claims, now: Self.now)
            return nil
        } catch { return error }
    }

    @Test func `a valid token for this server names somebody`() throws {
        let proof = try rule.proof(of: good, now: Self.now)
        #expect(proof.identity == Identity(issuer: "https://id.example", subject: "u-1"))
        #expect(proof.name == "ann")
    }

    @Test func `another issuer is refused, also one that is nearly the same`() {
        for issuer in [nil, "", "https://id.example/", "https://ID.example", "evil"] {
            #expect(refusal { $0.issuer = issuer } == .otherIssuer)
        }
    }

    @Test func `a token for others is refused`() {
        #expect(refusal { $0.audiences = [] } == .otherAudience)
        #expect(refusal { $0.audiences = ["App", "apps"] } == .otherAudience)
    }

    @Test func `a token is valid until it expires, and a minute longer for wrong clocks`() {
        #expect(refusal { $0.expires = 999_941 } == nil)
        #expect(refusal { $0.expires = 999_940 } == .expired)
        #expect(refusal { $0.expires = nil } == .endless)
        #expect(refusal { $0.expires = .nan } == .expired)
        #expect(refusal { $0.expires = -.infinity } == .expired)
    }

    @Test func `a token is valid from its start time, and a minute before`() {
        #expect(refusal { $0.notBefore = nil } == nil)
        #expect(refusal { $0.notBefore = 1_000_060 } == nil)
        #expect(refusal { $0.notBefore = 1_000_061 } == .notYetValid)
        #expect(refusal { $0.notBefore = .nan } == .notYetValid)
    }

    @Test func `the subject is a text of 1 to 255 bytes`() {
        #expect(refusal { $0.texts["sub"] = nil } == .noSubject)
        #expect(refusal { $0.texts["sub"] = "" } == .noSubject)
        #expect(refusal { $0.texts["sub"] = String(repeating: "x", count: 255) } == nil)
        #expect(refusal { $0.texts["sub"] = String(repeating: "x", count: 256) } == .noSubject)
        for control in ["\0", "\n", "\u{7F}", "\u{9B}", "\u{202E}", "\u{200B}"] {
            #expect(refusal { $0.texts["sub"] = "u-1\(control)x" } == .noSubject)
        }
    }

    @Test func `other claims may name the account, or nothing what it is called`() throws {
        var rule = rule
        rule.subjectClaim = "email"
        rule.nameClaim = nil
        var claims = good
        claims.texts["email"] = "ann@example.com"
        let proof = try rule.proof(of: claims, now: Self.now)
        #expect(proof.identity.subject == "ann@example.com")
        #expect(proof.name == nil)
        #expect(proof.accountName == nil)
    }

    @Test func `an account gets the provider's name and host`() {
        func name(_ name: String?, _ issuer: String) -> String? {
            IdentityProof(identity: Identity(issuer: issuer, subject: "u"), name: name).accountName
        }
        #expect(name("ann", "https://id.example/realms/home") == "ann (id.example)")
        #expect(name("ann", "accounts") == "ann (accounts)")
        #expect(name("ann", "") == "ann ()")
        #expect(name("", "https://id.example") == nil)
        #expect(name(nil, "https://id.example") == nil)
    }
}
