// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import JWTKit

/// What a token says of its signature, before anybody believes it.
package struct TokenHeader: Sendable {
    /// Nil: none that an asymmetric key could have; "none" and shared secrets among them.
    var algorithm: JWK.Algorithm?
    var keyID: String?

    /// Nil: the text is no token, or asks for what this program does not know.
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
        /// Extensions that must be understood (RFC 7515, section 4.1.11); none is.
        var crit: [String]?
    }

    private static func base64URL(_ text: Substring.UTF8View) -> Data? {
        let standard = String(decoding: text, as: UTF8.self)
            .replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        return Data(
            base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
    }
}
