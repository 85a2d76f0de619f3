// SPDX-License-Identifier: Apache-2.0

/// The two keys with which bytes are sealed for one place.
///
/// The tag, an HMAC over the place and the text, gives the key of the stream (SIV): the same text in
/// the same place has the same bytes, and no key of a stream is used for two texts.
struct SealedBytes: Sendable {
    static let version: UInt8 = 1
    private static let tagBytes = 16
    static let headerBytes = 1 + tagBytes

    /// For the tag.
    private let mac: HMAC
    /// For the key of the stream.
    private let encryption: HMAC

    init(mac: Bytes32, encryption: Bytes32) {
        self.mac = HMAC(key: mac.bytes)
        self.encryption = HMAC(key: encryption.bytes)
    }

    /// Derives both keys from a secret.
    /// - Parameter info: What the secret is used for.
    init(secret: [UInt8], info: SealingFields) {
        let keys = HKDF.derive(from: secret, info: info.bytes, blocks: 2)
        self.init(mac: keys[0], encryption: keys[1])
    }

    /// The version, the tag, and the text, encrypted.
    func seal(_ text: [UInt8], for place: SealingFields) -> [UInt8] {
        var text = text
        let tag = tag(of: text, place)
        crypt(&text, tag)
        return [Self.version] + tag + text
    }

    /// - Returns: The text; nil if the box was not made with these keys for this place.
    func open(_ box: [UInt8], for place: SealingFields) -> [UInt8]? {
        guard box.first == Self.version, box.count > Self.headerBytes else { return nil }
        let tag = Array(box[1..<Self.headerBytes])
        var text = Array(box[Self.headerBytes...])
        crypt(&text, tag)
        guard self.tag(of: text, place).isSame(as: tag[...]) else { return nil }
        return text
    }

    private func tag(of text: [UInt8], _ place: SealingFields) -> [UInt8] {
        var mac = mac
        mac.update(place.bytes)
        mac.update(text)
        return Array(mac.finalized().bytes.prefix(Self.tagBytes))
    }

    /// Encrypts the text, or decrypts it.
    private func crypt(_ text: inout [UInt8], _ tag: [UInt8]) {
        var cipher = ChaCha20(key: encryption.code(of: tag))
        cipher.apply(to: &text)
    }
}
