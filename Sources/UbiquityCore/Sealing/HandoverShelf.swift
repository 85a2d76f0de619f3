// SPDX-License-Identifier: Apache-2.0

/// The name under which a server keeps a handover: 16 bytes that follow from its secret, so that only
/// the two devices with the secret find it.
package struct HandoverName: Hashable, Sendable {
    package let bytes: [UInt8]

    package static let bytesCount = 16

    package init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.bytesCount else { return nil }
        self.bytes = bytes
    }

    /// - Parameter account: The account's identifier.
    package init(of secret: HandoverSecret, in account: String) {
        var info = SealingFields("ubiquity handover name 1")
        info.add(account.utf8)
        let derived = HKDF.derive(from: secret.bytes, info: info.bytes)[0]
        bytes = Array(derived.bytes.prefix(Self.bytesCount))
    }

    /// Reads ``text``.
    /// - Returns: Nil unless there are 32 lowercase hexadecimal digits.
    package init?(text: some StringProtocol) {
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in text.utf8 {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
            guard bytes.count <= Self.bytesCount else { return nil }
        }
        guard high == nil else { return nil }
        self.init(bytes)
    }

    /// In the address of requests.
    package var text: String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// The handovers of an account that its server keeps, without their boxes.
package struct HandoverShelf: Hashable, Sendable {
    package struct Item: Hashable, Sendable {
        package var name: HandoverName
        /// In milliseconds since 1970 by the server's clock.
        package var expires: Int64
        /// Whether a confined device has left it.
        package var isConfined: Bool

        package init(name: HandoverName, expires: Int64, isConfined: Bool) {
            (self.name, self.expires, self.isConfined) = (name, expires, isConfined)
        }
    }

    /// How long one is kept, in milliseconds.
    package static let keptMilliseconds: Int64 = 900_000
    /// The most that an account's confined devices have left at a time, all together; and the most
    /// that its others have.
    package static let itemsMax = 16

    package var items: [Item]

    package init(_ items: [Item]) { self.items = items }

    /// Adds a handover, in place of one with its name. A confined device's displaces none of the others.
    /// - Returns: Those that are no longer kept: expired, replaced, and the oldest of too many.
    package mutating func add(
        _ name: HandoverName, isConfined: Bool, at now: Int64
    ) -> [HandoverName] {
        var removed: [HandoverName] = []
        var (same, others): ([Item], [Item]) = ([], [])
        for item in items {
            if item.name == name || !item.isKept(at: now) {
                removed.append(item.name)
            } else if item.isConfined == isConfined {
                same.append(item)
            } else {
                others.append(item)
            }
        }
        same.sort { $0.expires < $1.expires }
        while same.count >= Self.itemsMax { removed.append(same.removeFirst().name) }
        same.append(
            Item(name: name, expires: now + Self.keptMilliseconds, isConfined: isConfined))
        items = others + same
        return removed
    }
}

extension HandoverShelf.Item {
    /// Whether a device still gets it.
    package func isKept(at now: Int64) -> Bool { expires > now }
}
