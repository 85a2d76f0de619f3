// SPDX-License-Identifier: Apache-2.0

/// Seals the records of one store before they leave the device, and opens those that come.
///
/// A pure function of keys and records: the same write sealed twice has the same bytes. A box only
/// opens as the content of the write that it was made for, because its tag covers the key, the part
/// and the whole stamp. For docs/PROTOCOL.md, "Sealed values".
package struct Sealer: Sendable {
    /// The generation that seals.
    package let generation: UInt32
    private let current: StoreKeys
    private let keys: [UInt32: StoreKeys]

    /// - Returns: Nil without keys of the generation.
    init?(generation: UInt32, keys: [UInt32: StoreKeys]) {
        guard let current = keys[generation] else { return nil }
        (self.generation, self.current, self.keys) = (generation, current, keys)
    }

    /// Seals the value of a record, whose time must be final. Deletions, and boxes that have not been
    /// opened, stay as they are.
    package func seal(_ record: Record) -> Record {
        guard let value = record.content.value, !record.content.isSealed else { return record }
        var record = record
        let bytes =
            record.key.isCount
            ? SealedCount(value).map { $0.bytes + countTag(of: record.key, current) } : nil
        record.content = .value(
            .sealed(SealedBox(generation: generation, bytes: bytes ?? box(value, in: record))))
        return record
    }

    /// The digest of a transaction in place of one that the server could compute from guesses.
    /// - Parameter stamp: The time at which the transaction was made, the device, and the digest of
    ///   its contents.
    package func digest(_ stamp: Stamp) -> UInt64 {
        var fields = SealingFields("ubiquity digest 1")
        fields.add(stamp)
        return max(1, current.digest.code(of: fields.bytes).bytes.prefix(8).bigEndianNumber)
    }

    // MARK: - Opening

    /// The outcome of opening a record that came from a server.
    package enum Opening: Hashable, Sendable {
        /// With its value, or a deletion.
        case opened(Record)
        /// As it came: nobody sealed it for this place, or with a key that this device has.
        case unopened(Record)
        /// No server of a sealed store has it.
        case forbidden(SealingFault)
    }

    /// Opens a record.
    /// - Parameters:
    ///   - isCurrent: Whether the store has it now, so that older generations no longer sealed it.
    ///   - elements: The number of values that may come out of boxes, as for
    ///     ``CanonicalForm/decode(_:within:)``. A box with more does not open.
    package func open(
        _ record: Record, isCurrent: Bool, within elements: inout Int
    ) -> Opening {
        guard let value = record.content.value else { return .opened(record) }
        guard case .sealed(let sealed) = value else {
            return .forbidden(.clearValue(record.key))
        }
        // The server adds up counts of different generations.
        if sealed.bytes.first == SealedCount.version {
            return open(count: sealed, of: record)
        }
        if isCurrent, sealed.generation < generation {
            return .forbidden(.olderGeneration(record.key))
        }
        guard let keys = keys[sealed.generation],
            let value = open(sealed.bytes, of: record, keys, within: &elements)
        else { return .unopened(record) }
        var record = record
        record.content = .value(value)
        return .opened(record)
    }

    private func open(count sealed: SealedBox, of record: Record) -> Opening {
        guard record.key.isCount, let keys = keys[sealed.generation],
            let count = SealedCount(bytes: sealed.bytes),
            countTag(of: record.key, keys).isSame(as: sealed.bytes[SealedCount.bytesCount...])
        else { return .unopened(record) }
        var record = record
        record.content = .value(count.value)
        return .opened(record)
    }

    // MARK: - Boxes

    static let version: UInt8 = 1
    private static let tagBytes = 16
    private static let headerBytes = 1 + tagBytes
    static let boxBytesMin = headerBytes + SealedText.bytesMin

    /// The version, the tag, and the text, encrypted with a key that the tag gives (SIV).
    private func box(_ value: PropertyListValue, in record: Record) -> [UInt8] {
        var text = SealedText.encode(value)
        let tag = Self.tag(of: text, in: record, current)
        Self.crypt(&text, tag, current)
        return [Self.version] + tag + text
    }

    private func open(
        _ box: [UInt8], of record: Record, _ keys: StoreKeys, within elements: inout Int
    ) -> PropertyListValue? {
        guard box.first == Self.version, box.count > Self.headerBytes else { return nil }
        let tag = Array(box[1..<Self.headerBytes])
        var text = Array(box[Self.headerBytes...])
        Self.crypt(&text, tag, keys)
        guard Self.tag(of: text, in: record, keys).isSame(as: tag[...]) else { return nil }
        return SealedText.decode(text, within: &elements)
    }

    private static func tag(of text: [UInt8], in record: Record, _ keys: StoreKeys) -> [UInt8] {
        var fields = SealingFields("ubiquity box 1")
        fields.add(record.key.string.utf8)
        fields.add((record.key.part?.text.string ?? "").utf8)
        fields.add(record.stamp)
        var mac = keys.mac
        mac.update(fields.bytes)
        mac.update(text)
        return Array(mac.finalized().bytes.prefix(tagBytes))
    }

    /// Encrypts the text, or decrypts it.
    private static func crypt(_ text: inout [UInt8], _ tag: [UInt8], _ keys: StoreKeys) {
        var cipher = ChaCha20(key: keys.encryption.code(of: tag))
        cipher.apply(to: &text)
    }

    /// Says that the key is a counter, which nobody without the store's key can say.
    private func countTag(of key: Key, _ keys: StoreKeys) -> [UInt8] {
        var fields = SealingFields("ubiquity count 1")
        fields.add(key.string.utf8)
        return Array(keys.count.code(of: fields.bytes).bytes.prefix(SealedCount.tagBytes))
    }
}

/// A record that no server of a sealed store may have.
package enum SealingFault: Error, Hashable, Sendable {
    /// A value that is not sealed.
    case clearValue(Key)
    /// A value that was sealed before the key was replaced.
    case olderGeneration(Key)
}

extension SealingFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .clearValue(let key): "the value of \"\(key)\" is not sealed"
        case .olderGeneration(let key): "the value of \"\(key)\" is sealed with an older key"
        }
    }
}

extension SealingFields {
    mutating func add(_ stamp: Stamp) {
        add(UInt64(stamp.timestamp.milliseconds))
        add(UInt64(stamp.timestamp.counter))
        add(stamp.device.rawValue)
        add(stamp.digest)
    }
}

extension Sequence<UInt8> {
    /// Of the first eight, or fewer.
    fileprivate var bigEndianNumber: UInt64 { reduce(0) { $0 << 8 | UInt64($1) } }
}
