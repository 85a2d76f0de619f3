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

    /// Reads a code that a server may see.
    /// - Throws: ``KeyringRefusal/mistyped`` for what ``init(_:)`` does not read, and
    ///   ``KeyringRefusal/secretAlone`` for a secret without the rest of its code, or a recovery key.
    package init(given text: String) throws(KeyringRefusal) {
        guard let code = KeyCode(text) else { throw .mistyped }
        let isAlone =
            code.secret == nil
            && (RecoveryKey(text: text) != nil || HandoverSecret(text: text) != nil)
        guard !isAlone else { throw .secretAlone }
        self = code
    }

    /// Reads a code of any kind, without the blanks around it. Whether the front means anything is not
    /// checked.
    /// - Returns: Nil if it is empty or longer than 4,096 bytes, or if it begins with `ubiquity:` and
    ///   its secret cannot be read: a part of it is missing, or was mistyped.
    package init?(_ text: String) {
        let isBlank: (UInt8) -> Bool = { $0 <= 0x20 }
        var bytes = Array(text.utf8.drop(while: isBlank))
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        guard (1...Self.bytesMax).contains(bytes.count) else { return nil }
        let scheme = Array(Self.scheme.utf8)
        // Scanners and keyboards make capitals.
        let begins =
            bytes.count >= scheme.count
            && zip(bytes, scheme).allSatisfy { byte, letter in
                byte == letter || (0x41...0x5A) ~= byte && byte + 0x20 == letter
            }
        guard begins else {
            self.init(front: String(decoding: bytes, as: UTF8.self), secret: nil)
            return
        }
        guard let end = bytes.lastIndex(of: UInt8(ascii: ";")), end > scheme.count,
            let secret = HandoverSecret(
                text: String(decoding: bytes[(end + 1)...], as: UTF8.self))
        else { return nil }
        self.init(
            front: String(decoding: bytes[scheme.count..<end], as: UTF8.self), secret: secret)
    }

    /// The whole code. With a secret, to be shown on this device's screen alone.
    package var text: String {
        guard let secret else { return front }
        return "\(Self.scheme)\(front);\(secret.text)"
    }
}
