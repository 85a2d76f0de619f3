// SPDX-License-Identifier: Apache-2.0

/// What a device takes in of one store, whatever a server sends.
///
/// Four times what the store's limits allow, or those that a store has by default where they are less:
/// limits are lowered, and a server of version 0.1 counts no elements. What is beyond ends the
/// connection.
package struct IntakeLimits: Hashable, Sendable {
    /// Of what the device holds as agreed; ``Usage`` counts it.
    package let bytesMax: Int
    package let keysMax: Int
    package let partsMax: Int
    /// Of the tombstones that the device keeps, by their weights; the oldest are dropped.
    package let deletionsMax: Int
    /// Of one answer or event.
    package let message: MessageBounds

    private static let margin = 4
    private static let deletionsMax = 16_384

    /// - Parameter limits: The server's; nil: not known yet, and the store may have what any store may.
    package init(_ limits: StoreLimits?) {
        let (ceiling, usual) = (StoreLimits.ceiling, StoreLimits())
        let limits = limits?.believed ?? ceiling
        let bytes = max(limits.storeBytesMax, usual.storeBytesMax)
        bytesMax = min(Self.margin * bytes, ceiling.storeBytesMax)
        keysMax = min(Self.margin * max(limits.keysMax, usual.keysMax), ceiling.keysMax)
        partsMax = Self.margin * StoreLimits.partsMax
        deletionsMax = Self.margin * Self.deletionsMax
        message = MessageBounds(ofStoreWith: bytes)
    }

    /// Checks what a server's records do to the store. What shrinks it always passes.
    package func check(from old: Usage, to new: Usage) throws(LimitViolation) {
        guard new.keys <= keysMax || new.keys <= old.keys else {
            throw .keys(count: new.keys, max: keysMax)
        }
        guard new.parts <= partsMax || new.parts <= old.parts else {
            throw .parts(count: new.parts, max: partsMax)
        }
        guard new.bytes <= bytesMax || new.bytes <= old.bytes else {
            throw .storeBytes(bytes: new.bytes, max: bytesMax)
        }
    }
}

extension StoreLimits {
    /// What no device takes for a limit of a store, though a server may say more.
    package static let ceiling: StoreLimits = {
        var limits = StoreLimits()
        limits.storeBytesMax = 64 << 20
        limits.keysMax = 65_536
        limits.valueBytesMax = 64 << 20
        limits.pushBytesMax = 64 << 20
        return limits
    }()

    /// The limits as a device takes them from a server.
    package var believed: StoreLimits {
        var limits = self
        limits.storeBytesMax = min(storeBytesMax, Self.ceiling.storeBytesMax)
        limits.keysMax = min(keysMax, Self.ceiling.keysMax)
        limits.valueBytesMax = min(valueBytesMax, Self.ceiling.valueBytesMax)
        limits.pushBytesMax = min(pushBytesMax, Self.ceiling.pushBytesMax)
        switch key {
        case .utf8Bytes(let max): limits.key = .utf8Bytes(min(max, Key.bytesMax))
        case .utf16Units(let max): limits.key = .utf16Units(min(max, Key.bytesMax))
        }
        return limits
    }
}

/// How much one message may be, so that reading it takes a known amount of memory: an element of
/// two bytes becomes an object of a hundred.
package struct MessageBounds: Hashable, Sendable {
    package var bytes: Int
    /// In JSON, the openings of objects and arrays and the commas; in the binary form, the fields.
    package var elements: Int

    package init(bytes: Int, elements: Int) {
        self.bytes = bytes
        self.elements = elements
    }

    /// Of an answer that is a few fields, or the reason why there is none.
    package static let small = MessageBounds(bytes: 64 << 10, elements: 4_096)
    /// Of a list of devices, accounts, apps or audit entries.
    package static let list = MessageBounds(bytes: 8 << 20, elements: 131_072)

    private static let ceiling = MessageBounds(bytes: 64 << 20, elements: 1 << 21)

    /// Of all records of a store, or what an answer to a push repeats of them. An element that
    /// counts 8 bytes is four of JSON's at most; a byte, six; the rest is for the records.
    fileprivate init(ofStoreWith bytesMax: Int) {
        bytes = min(8 * bytesMax + (16 << 20), Self.ceiling.bytes)
        elements = min(bytesMax / 2 + (1 << 19), Self.ceiling.elements)
    }
}
