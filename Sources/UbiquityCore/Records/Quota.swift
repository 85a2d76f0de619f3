// SPDX-License-Identifier: Apache-2.0

/// The limits of one store: server settings that its devices are told.
package struct StoreLimits: Hashable, Sendable {
    /// For all values together, see ``PropertyListValue/quotaBytes``. Keys do not count.
    package var storeBytesMax = 1_048_576
    package var keysMax = 1_024
    /// For all keys with a policy together. Not a setting: every client knows it.
    package static let partsMax = 16_384
    package var valueBytesMax = 1_048_576
    package var key = KeyLimit.utf8Bytes(64)
    /// The body of one request, in either format.
    package var pushBytesMax = 8 << 20

    package init() {}
}

/// The limits of a store's history.
package struct HistoryLimits: Hashable, Sendable {
    /// The time for which a version is kept after its end. 0 means no history.
    package var milliseconds: Int64
    /// The most versions of an entry: the newest, and of each of the last minutes, hours and days
    /// before them the one that stayed longest.
    package var versionsMax: Int
    /// The most bytes of a store's versions together, see ``HistoryRule/bytes(key:value:)``.
    package var bytesMax: Int

    package init(
        milliseconds: Int64 = 30 * 86_400_000, versionsMax: Int = 50,
        bytesMax: Int = bytesMax(ofStore: StoreLimits().storeBytesMax)
    ) {
        self.milliseconds = milliseconds
        self.versionsMax = versionsMax
        self.bytesMax = bytesMax
    }

    /// The most bytes of the history of a store that may have this many.
    package static func bytesMax(ofStore bytes: Int) -> Int { 4 * bytes }

    package var isOff: Bool { milliseconds <= 0 }

    /// The most minutes of which a version is kept, and the most hours, and days.
    package var periodsMax: Int { versionsMax / Self.periodsDivisor }
    /// The most versions that are kept because they are the newest.
    package var newestMax: Int { versionsMax - Self.periodsMilliseconds.count * periodsMax }

    /// Half of the versions are the newest ones: enough to undo recent edits.
    private static let periodsDivisor = 6
    /// A minute, an hour, and a day.
    package static let periodsMilliseconds: [Int64] = [60_000, 3_600_000, 86_400_000]
}

/// The space that the values of a store take.
package struct Usage: Hashable, Sendable {
    package var bytes: Int
    package var keys: Int
    package var parts: Int

    /// The size of a part in addition to its name and value.
    private static let partBytes = 16

    package init(bytes: Int = 0, keys: Int = 0, parts: Int = 0) {
        self.bytes = bytes
        self.keys = keys
        self.parts = parts
    }

    /// Replaces a key's value; nil stands for no value.
    ///
    /// A part does not count as a key, but its name takes space.
    package mutating func replace(
        _ old: PropertyListValue?, by new: PropertyListValue?, of key: Key
    ) {
        let partBytes = key.part.map { $0.text.string.utf8.count + Self.partBytes } ?? 0
        let change = (new == nil ? 0 : 1) - (old == nil ? 0 : 1)
        if let old { bytes -= old.quotaBytes + partBytes }
        if let new { bytes += new.quotaBytes + partBytes }
        if key.isPart { parts += change } else { keys += change }
    }

    /// Checks a change that leads here. What shrinks always passes.
    /// - Parameter factor: A multiple of the maxima that still passes.
    func check(
        from old: Usage, within max: Usage, factor: Int = 1
    ) throws(LimitViolation) {
        guard keys <= max.keys * factor || keys <= old.keys else {
            throw .keys(count: keys, max: max.keys)
        }
        guard parts <= max.parts * factor || parts <= old.parts else {
            throw .parts(count: parts, max: max.parts)
        }
        guard bytes <= max.bytes * factor || bytes <= old.bytes else {
            throw .storeBytes(bytes: bytes, max: max.bytes)
        }
    }
}

/// The reason a well-formed write is refused.
package enum LimitViolation: Error, Hashable, Sendable {
    case keyTooLong(KeyLimit)
    case valueTooLarge(bytes: Int, max: Int)
    case storeBytes(bytes: Int, max: Int)
    case keys(count: Int, max: Int)
    case parts(count: Int, max: Int)
    /// The transaction is larger than one push may be.
    case pushBytes(bytes: Int, max: Int)
}

extension LimitViolation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .keyTooLong(let limit):
            KeyError.tooLong(limit).description
        case .valueTooLarge(let bytes, let max):
            "the value has \(bytes) bytes, but may have at most \(max)"
        case .storeBytes(let bytes, let max):
            "the store's values would have \(bytes) bytes, but may have at most \(max) together"
        case .keys(let count, let max):
            "the store would have \(count) keys, but may have at most \(max)"
        case .parts(let count, let max):
            "the keys with a policy would have \(count) parts, but may have at most \(max)"
        case .pushBytes(let bytes, let max):
            "the change would count \(bytes) bytes in a request to the server, which may count at "
                + "most \(max); change less at once"
        }
    }

    /// The machine-readable code, as in the protocol.
    package var code: String {
        switch self {
        case .keyTooLong: "key-too-long"
        case .valueTooLarge: "value-too-large"
        case .storeBytes: "quota-bytes"
        case .keys: "quota-keys"
        case .parts: "quota-parts"
        case .pushBytes: "push-bytes"
        }
    }
}

extension StoreLimits {
    /// Checks one write on its own, whatever else the store holds. A deletion always passes.
    package func check(_ key: Key, _ content: Content) throws(LimitViolation) {
        guard let value = content.value else { return }
        do { try self.key.check(key) } catch { throw .keyTooLong(self.key) }
        let bytes = value.quotaBytes
        guard bytes <= valueBytesMax else {
            throw .valueTooLarge(bytes: bytes, max: valueBytesMax)
        }
    }

    /// Checks the effect of a transaction on the whole store. A transaction that deletes or shrinks
    /// always passes, even if the store exceeds a limit that was lowered.
    /// - Parameter writes: Removing a key with a policy writes removals of its parts, which take at
    ///   most as much space as the parts.
    package func check(
        from old: Usage, to new: Usage, by writes: some Collection<(key: Key, content: Content)>
    ) throws(LimitViolation) {
        let max = Usage(bytes: storeBytesMax, keys: keysMax, parts: Self.partsMax)
        do throws(LimitViolation) { try new.check(from: old, within: max) } catch {
            let takesAway =
                writes.contains { $0.key.isPart }
                && writes.allSatisfy { $0.key.isTakenAway(by: $0.content) }
            guard takesAway else { throw error }
            try new.check(from: old, within: max, factor: 2)
        }
    }
}

extension StoreLimits {
    /// The reason a value within the limits could never be sent; nil if each fits into a push.
    package var contradiction: String? {
        let keyBytes =
            switch key {
            case .utf8Bytes(let max): max
            case .utf16Units(let max): 3 * max
            }
        let value = min(valueBytesMax, storeBytesMax)
        let bytes = value + keyBytes + Record.pushBytesMin
        guard bytes > pushBytesMax else { return nil }
        return "a value of \(value) bytes would fit into a store, but not into a request of "
            + "\(pushBytesMax) bytes, where it counts \(bytes)"
    }
}
