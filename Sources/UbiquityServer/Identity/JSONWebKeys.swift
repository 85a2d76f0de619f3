// SPDX-License-Identifier: Apache-2.0

package import Foundation
internal import JWTKit

/// The public keys of an identity provider.
///
/// Contains the keys of the provider's set that can verify a signature. Shared secrets, encryption
/// keys and unknown kinds are left out, since the others are valid without them.
package struct JSONWebKeys: Sendable {
    private let keys: [JWK]

    static let bytesMax = 256 << 10
    static let keysMax = 256

    static let none = JSONWebKeys(keys: [])

    private init(keys: [JWK]) { self.keys = keys }

    /// - Throws: ``Unusable``.
    package init(parsing bytes: Data) throws(Unusable) {
        guard bytes.count <= Self.bytesMax, let set = Self.object(bytes),
            let members = set["keys"] as? [[String: Any]], members.count <= Self.keysMax
        else { throw .noKeySet }
        keys = members.filter { $0["use"] as? String ?? "sig" == "sig" }.compactMap(Self.key)
        guard !keys.isEmpty else { throw .noUsableKey }
    }

    /// The reason a key set cannot be used. Ends a sentence.
    package enum Unusable: Error, CustomStringConvertible {
        case noKeySet
        case noUsableKey

        package var description: String {
            switch self {
            case .noKeySet: "it is not a set of JSON Web Keys, or is too large"
            case .noUsableKey: "it has no public key for RSA, ECDSA or EdDSA signatures"
            }
        }
    }

    private static func object(_ bytes: Data) -> [String: Any]? {
        try? JSONSerialization.jsonObject(with: bytes) as? [String: Any]
    }

    private static func key(_ member: [String: Any]) -> JWK? {
        guard let bytes = try? JSONSerialization.data(withJSONObject: member) else { return nil }
        return try? JSONDecoder().decode(JWK.self, from: bytes)
    }

    /// The key that the token names, for its algorithm; nil if there is none. A token that names no
    /// key is verified with the only key, if there is just one.
    func key(for header: TokenHeader) -> JWK? {
        guard let key = header.keyID.map(key(named:)) ?? onlyKey, let algorithm = header.algorithm,
            Self.isFor(key.keyType, algorithm), key.algorithm.map({ $0 == algorithm }) ?? true
        else { return nil }
        var fixed = key
        // Only the public part is used: a set with a private key in it is no reason to sign.
        fixed.privateExponent = nil
        fixed.keyIdentifier = JWKIdentifier(string: "key")
        fixed.algorithm = algorithm
        return fixed
    }

    package func hasKey(for header: TokenHeader) -> Bool { key(for: header) != nil }

    private func key(named name: String) -> JWK? {
        keys.first { $0.keyIdentifier?.string == name }
    }

    private var onlyKey: JWK? { keys.count == 1 ? keys[0] : nil }

    private static func isFor(_ type: JWK.KeyType, _ algorithm: JWK.Algorithm) -> Bool {
        let fitting: [JWK.Algorithm]
        switch type {
        case .rsa: fitting = [.rs256, .rs384, .rs512, .ps256, .ps384, .ps512]
        case .ecdsa: fitting = [.es256, .es384, .es512]
        case .octetKeyPair: fitting = [.eddsa]
        default: fitting = []
        }
        return fitting.contains(algorithm)
    }
}
