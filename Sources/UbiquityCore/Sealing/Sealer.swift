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
    /// The generation before; nil if this device knows none.
    var previous: UInt32? { keys.keys.filter { $0 < generation }.max() }

    /// How far a time may be ahead of this device's own clock, in milliseconds. The times of deletions
    /// and counts are the server's to say, and a clock that follows one never goes back.
    package static let aheadMax: Int64 = 86_400_000

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
        /// As it came: nobody sealed it for this place.
        case unopened(Record)
        /// No server of a sealed store has it.
        case forbidden(SealingFault)
    }

    /// Opens a record. When a store gets another key, all that it has is sealed anew, so that nothing
    /// is believed that an older key has sealed.
    /// - Parameter elements: The number of values that may come out of boxes, as for
    ///   ``CanonicalForm/decode(_:within:)``. A box with more does not open.
    package func open(_ record: Record, within elements: inout Int) -> Opening {
        guard let value = record.content.value else { return .opened(record) }
        guard case .sealed(let sealed) = value else {
            return .forbidden(.clearValue(record.key))
        }
        guard sealed.generation == generation else {
            return .forbidden(.otherGeneration(record.key))
        }
        return open(sealed, of: record, within: &elements).map(Opening.opened) ?? .unopened(record)
    }

    /// The record with what is in its box, of any generation; nil if no key of this device opens it.
    package func open(
        _ sealed: SealedBox, of record: Record, within elements: inout Int
    ) -> Record? {
        guard let keys = keys[sealed.generation] else { return nil }
        var record = record
        if sealed.bytes.first == SealedCount.version {
            guard record.key.isCount, let count = SealedCount(bytes: sealed.bytes),
                countTag(of: record.key, keys).isSame(as: sealed.bytes[SealedCount.bytesCount...])
            else { return nil }
            record.content = .value(count.value)
        } else {
            guard let value = open(sealed.bytes, of: record, keys, within: &elements) else {
                return nil
            }
            record.content = .value(value)
        }
        return record
    }

    // MARK: - Boxes

    private func box(_ value: PropertyListValue, in record: Record) -> [UInt8] {
        current.boxes.seal(SealedText.encode(value), for: Self.place(of: record))
    }

    private func open(
        _ box: [UInt8], of record: Record, _ keys: StoreKeys, within elements: inout Int
    ) -> PropertyListValue? {
        keys.boxes.open(box, for: Self.place(of: record)).flatMap {
            SealedText.decode($0, within: &elements)
        }
    }

    private static func place(of record: Record) -> SealingFields {
        var fields = SealingFields("ubiquity box 1")
        fields.add(record.key.string.utf8)
        fields.add((record.key.part?.text.string ?? "").utf8)
        fields.add(record.stamp)
        return fields
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
    /// A value that was sealed with another key than the store's.
    case otherGeneration(Key)
    /// A key that occurs twice in a store.
    case repeated(Key)
    /// A time far in the future.
    case ahead(Key)
    /// A device and a time of which there are several transactions.
    case contradictory(Key)
}

extension SealingFault {
    /// Whether a server that was restored has it, too.
    package var isOfRestored: Bool {
        switch self {
        case .clearValue, .otherGeneration: true
        case .repeated, .ahead, .contradictory: false
        }
    }
}

extension SealingFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .clearValue(let key): "the value of \"\(key)\" is not sealed"
        case .otherGeneration(let key): "the value of \"\(key)\" is sealed with another key"
        case .repeated(let key): "\"\(key)\" is there twice"
        case .ahead(let key): "the time of \"\(key)\" is in the future"
        case .contradictory(let key):
            "\"\(key)\" is in one of more than \(Sealer.transactionsMax) transactions that one device "
                + "is said to have made at one time"
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
    var bigEndianNumber: UInt64 { reduce(0) { $0 << 8 | UInt64($1) } }
}
