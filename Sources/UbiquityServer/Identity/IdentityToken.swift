// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import JWTKit
internal import UbiquityCore

/// The header of a token, which describes its signature. Not verified yet.
package struct TokenHeader: Sendable {
    /// Nil unless it is an asymmetric algorithm. Excludes "none" and shared secrets.
    var algorithm: JWK.Algorithm?
    var keyID: String?

    /// Fails if the text is not a token, or requires an unknown extension.
    package init?(of token: String) {
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, token.utf8.count <= Self.tokenBytesMax,
            let bytes = Self.base64URL(parts[0]),
            let fields = try? JSONDecoder().decode(Fields.self, from: bytes), fields.crit == nil
        else { return nil }
        algorithm = fields.alg.flatMap { JWK.Algorithm(rawValue: $0) }
        keyID = fields.kid
    }

    static let tokenBytesMax = 16 << 10

    private struct Fields: Decodable {
        var alg: String?
        var kid: String?
        /// Critical extensions (RFC 7515, section 4.1.11). None is supported.
        var crit: [String]?
    }

    private static func base64URL(_ text: Substring.UTF8View) -> Data? {
        let standard = String(decoding: text, as: UTF8.self)
            .replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        return Data(
            base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
    }
}

/// Decodes the claims of a token from JSON. ``IdentityRule`` interprets them.
struct TokenClaims: JWTPayload {
    var claims: IdentityClaims

    func verify(using algorithm: some JWTAlgorithm) {}

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Claim.self)
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
    private static func audiences(_ members: KeyedDecodingContainer<Claim>) -> [String] {
        if let one = try? members.decode(String.self, forKey: "aud") { return [one] }
        return (try? members.decode([String].self, forKey: "aud")) ?? []
    }

    func encode(to encoder: any Encoder) throws {
        preconditionFailure("The server signs no tokens.")
    }

    private struct Claim: CodingKey, ExpressibleByStringLiteral {
        var stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init(stringLiteral value: String) { stringValue = value }
        init?(intValue: Int) { nil }
    }
}
