// SPDX-License-Identifier: Apache-2.0

/// What a person scans or pastes to sign in a device, to approve or to unlock one.
///
/// With the secret of a handover it begins with `ubiquity:`, so that no browser opens it, and is
/// never made into a link: `ubiquity:`, the front, a semicolon and the secret's text.
package struct KeyCode: Hashable, Sendable {
    /// A code, an identifier, or a server's address with a code: what it would be without a secret.
    @Exact package var front: String
    /// Nil for a code that hands over no keys.
    package var secret: HandoverSecret?

    package init(front: String, secret: HandoverSecret?) {
        self.front = front
        self.secret = secret
    }

    private static let scheme = "ubiquity:"
    private static let bytesMax = 4_096

    /// Reads a code of any kind. Whether the front means anything is not checked.
    /// - Returns: Nil if it is empty or longer than 4,096 bytes, or if it begins with `ubiquity:` and
    ///   its secret cannot be read: a part of it is missing, or was mistyped.
    package init?(_ text: String) {
        guard (1...Self.bytesMax).contains(text.utf8.count) else { return nil }
        let bytes = Array(text.utf8)
        let scheme = Array(Self.scheme.utf8)
        // Scanners and keyboards make capitals.
        let begins =
            bytes.count >= scheme.count
            && zip(bytes, scheme).allSatisfy { byte, letter in
                byte == letter || (0x41...0x5A) ~= byte && byte + 0x20 == letter
            }
        guard begins else {
            self.init(front: text, secret: nil)
            return
        }
        guard let end = bytes.lastIndex(of: UInt8(ascii: ";")), end >= scheme.count,
            let secret = HandoverSecret(
                text: String(decoding: bytes[(end + 1)...], as: UTF8.self))
        else { return nil }
        self.init(
            front: String(decoding: bytes[scheme.count..<end], as: UTF8.self), secret: secret)
        guard !front.utf8.isEmpty else { return nil }
    }

    /// Whether it is a secret without the rest of its code, or a recovery key, which no server must see.
    package var isSecretAlone: Bool {
        secret == nil && (RecoveryKey(text: front) != nil || HandoverSecret(text: front) != nil)
    }

    package static let mistyped = "the code was mistyped, or a part of it is missing"
    package static let secretAlone =
        "that is a recovery key, or a part of a code, which is shown to nobody; give the whole code"

    /// The whole code. With a secret, to be shown on this device's screen alone.
    package var text: String {
        guard let secret else { return front }
        return "\(Self.scheme)\(front);\(secret.text)"
    }
}
