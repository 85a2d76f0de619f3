// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import CryptoExtras
internal import Foundation

/// An identity provider with a key of each kind. Makes tokens by hand, wrong ones too.
struct TestIdentityProvider {
    enum Algorithm: String, CaseIterable { case ES256, EdDSA, RS256, PS256 }

    let issuer = "https://id.example"
    private let elliptic = P256.Signing.PrivateKey()
    private let edwards = Curve25519.Signing.PrivateKey()
    private let rsa = try! _RSA.Signing.PrivateKey(keySize: .bits2048)

    // MARK: - Keys

    /// The set of its keys, named by their algorithms: what it publishes.
    var keySet: String { keySet(Algorithm.allCases.map { key($0) }) }

    func keySet(_ keys: [[String: String]]) -> String { json(["keys": keys]) }

    /// Without an algorithm, where providers leave it out.
    func key(_ algorithm: Algorithm, named name: String? = nil) -> [String: String] {
        var key = publicKey(algorithm)
        key["kid"] = name ?? algorithm.rawValue
        key["use"] = "sig"
        return key
    }

    private func publicKey(_ algorithm: Algorithm) -> [String: String] {
        switch algorithm {
        case .ES256:
            let point = elliptic.publicKey.rawRepresentation
            return [
                "kty": "EC", "crv": "P-256", "x": base64(point.prefix(32)),
                "y": base64(point.suffix(32)),
            ]
        case .EdDSA:
            return [
                "kty": "OKP", "crv": "Ed25519",
                "x": base64(edwards.publicKey.rawRepresentation),
            ]
        case .RS256, .PS256:
            let numbers = try! rsa.publicKey.getKeyPrimitives()
            return [
                "kty": "RSA", "n": base64(numbers.modulus), "e": base64(numbers.publicExponent),
            ]
        }
    }

    // MARK: - Tokens

    /// The claims of a valid token, which a test may change.
    func claims(_ subject: String) -> [String: Any] {
        [
            "iss": issuer, "aud": "app", "sub": subject,
            "exp": Date().timeIntervalSince1970 + 600, "preferred_username": "\(subject)-name",
        ]
    }

    func token(_ claims: [String: Any], _ algorithm: Algorithm = .ES256) -> String {
        token(claims, header: ["alg": algorithm.rawValue, "kid": algorithm.rawValue], algorithm)
    }

    func token(
        _ claims: [String: Any], header: [String: Any], _ algorithm: Algorithm = .ES256
    ) -> String {
        let signed = unsigned(claims, header: header)
        return signed + "." + base64(signature(of: Data(signed.utf8), algorithm))
    }

    /// The first two parts.
    func unsigned(_ claims: [String: Any], header: [String: Any]) -> String {
        base64(Data(json(header).utf8)) + "." + base64(Data(json(claims).utf8))
    }

    private func signature(of data: Data, _ algorithm: Algorithm) -> Data {
        switch algorithm {
        case .ES256: try! elliptic.signature(for: data).rawRepresentation
        case .EdDSA: try! edwards.signature(for: data)
        case .RS256:
            try! rsa.signature(for: SHA256.hash(data: data), padding: .insecurePKCS1v1_5)
                .rawRepresentation
        case .PS256:
            try! rsa.signature(for: SHA256.hash(data: data), padding: .PSS).rawRepresentation
        }
    }

    /// With what everybody knows as the secret: the oldest trick.
    func forgedBySharedSecret(_ claims: [String: Any]) -> String {
        let signed = unsigned(claims, header: ["alg": "HS256", "kid": "RS256"])
        let secret = SymmetricKey(data: Data(keySet.utf8))
        let code = HMAC<SHA256>.authenticationCode(for: Data(signed.utf8), using: secret)
        return signed + "." + base64(Data(code))
    }

    func base64(_ data: some DataProtocol) -> String {
        Data(data).base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    }

    private func json(_ object: Any) -> String {
        String(decoding: try! JSONSerialization.data(withJSONObject: object), as: UTF8.self)
    }
}
