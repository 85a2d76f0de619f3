// SPDX-License-Identifier: Apache-2.0

internal import JWTKit
internal import UbiquityCore

/// Decodes the claims of a token from JSON. ``IdentityRule`` interprets them.
struct TokenClaims: JWTPayload {
    var claims: IdentityClaims

    func verify(using algorithm: some JWTAlgorithm) {}

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Name.self)
        claims = IdentityClaims(
            issuer: try? members.decode(String.self, forKey: "iss"),
            audiences: Self.audiences(members),
            expires: try? members.decode(Double.self, forKey: "exp"),
            notBefore: members.contains("nbf")
                ? (try? members.decode(Double.self, forKey: "nbf")) ?? .nan : nil)
        for name in members.allKeys {
            claims.texts[name.stringValue] = try? members.decode(String.self, forKey: name)
        }
    }

    /// A string, or a list of strings.
    private static func audiences(_ members: KeyedDecodingContainer<Name>) -> [String] {
        if let one = try? members.decode(String.self, forKey: "aud") { return [one] }
        return (try? members.decode([String].self, forKey: "aud")) ?? []
    }

    func encode(to encoder: any Encoder) throws {
        preconditionFailure("The server signs no tokens.")
    }

    private struct Name: CodingKey, ExpressibleByStringLiteral {
        var stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init(stringLiteral value: String) { stringValue = value }
        init?(intValue: Int) { nil }
    }
}
