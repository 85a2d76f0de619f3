// SPDX-License-Identifier: Apache-2.0

/// The maximum that a device accepts for one store, whatever the server sends.
///
/// Four times the store's limits, or four times the defaults if those are higher: a store may
/// exceed limits that were lowered, and a server of version 0.1 does not count elements. The device
/// ends the connection of a server that sends more.
package struct IntakeLimits: Hashable, Sendable {
    /// The maximum of the device's confirmed records.
    package let usageMax: Usage
    /// The maximum weight of the tombstones that the device keeps. The oldest are dropped.
    package static let tombstonesMax = margin * 16_384
    /// The maximum of one answer or event.
    package let message: MessageBounds

    private static let margin = 4

    /// - Parameter limits: The server's limits; nil if they are not known yet, so that the highest
    ///   limits of any store apply.
    package init(_ limits: StoreLimits?) {
        let (ceiling, usual) = (StoreLimits.ceiling, StoreLimits())
        let limits = limits?.believed ?? ceiling
        let bytes = max(limits.storeBytesMax, usual.storeBytesMax)
        usageMax = Usage(
            bytes: min(Self.margin * bytes, ceiling.storeBytesMax),
            keys: min(Self.margin * max(limits.keysMax, usual.keysMax), ceiling.keysMax),
            parts: Self.margin * StoreLimits.partsMax)
        message = MessageBounds(ofStoreWith: bytes)
    }

    /// Checks the effect of a server's records on the store. Records that shrink it always pass.
    package func check(from old: Usage, to new: Usage) throws(LimitViolation) {
        try new.check(from: old, within: usageMax)
    }
}

extension StoreLimits {
    /// The highest limits that a device believes, whatever a server announces.
    package static let ceiling: StoreLimits = {
        var limits = StoreLimits()
        limits.storeBytesMax = 64 << 20
        limits.keysMax = 65_536
        limits.valueBytesMax = 64 << 20
        limits.pushBytesMax = 64 << 20
        return limits
    }()

    /// The limits that a device adopts from a server.
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

/// The maximum size of one message, so that decoding it takes a limited amount of memory: an element
/// of two bytes may take a hundred once it is decoded.
package struct MessageBounds: Hashable, Sendable {
    package var bytes: Int
    /// In JSON, the number of opening brackets, braces and commas; in the binary format, the number
    /// of fields.
    package var elements: Int

    package init(bytes: Int, elements: Int) {
        self.bytes = bytes
        self.elements = elements
    }

    /// For an answer with a few fields, or the reason for a failure.
    package static let small = MessageBounds(bytes: 64 << 10, elements: 4_096)
    /// For a list of devices, accounts, apps or audit entries.
    package static let list = MessageBounds(bytes: 8 << 20, elements: 131_072)

    private static let ceiling = MessageBounds(bytes: 64 << 20, elements: 1 << 21)

    /// For a push: no more elements than the whole store may have.
    package init(ofPushWithin limits: StoreLimits) {
        self.init(ofStoreWith: limits.storeBytesMax)
        bytes = limits.pushBytesMax
    }

    /// For the same values when they are sealed. Padding makes a box at most an eighth larger than the
    /// value, and what else it has is less than a write counts; in JSON, Base64 adds a third.
    package var sealed: MessageBounds {
        MessageBounds(bytes: bytes + bytes / 2, elements: elements)
    }

    /// For all records of a store, or their repetition in the answer to a push. An element that
    /// counts 8 bytes has at most four JSON elements, and a byte at most six characters. The rest
    /// is for the records.
    fileprivate init(ofStoreWith bytesMax: Int) {
        bytes = min(8 * bytesMax + (16 << 20), Self.ceiling.bytes)
        elements = min(bytesMax / 2 + (1 << 19), Self.ceiling.elements)
    }
}
