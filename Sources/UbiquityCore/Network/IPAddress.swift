// SPDX-License-Identifier: Apache-2.0

/// An IP address as a number. An IPv4-mapped IPv6 address equals its IPv4 address.
package struct IPAddress: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64
    package let isIPv4: Bool

    private init(high: UInt64, low: UInt64) {
        isIPv4 = high == 0 && low >> 32 == 0xFFFF
        (self.high, self.low) = (high, low)
    }

    /// Parses strictly: four decimal numbers without leading zeros, or the text forms of RFC 4291.
    /// Fails for spellings that only some resolvers accept, such as `127.1` or `0x7f000001`.
    /// - Parameter text: Without brackets. A zone after `%` is ignored.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count <= 64 else { return nil }
        if let number = Self.ipv4(text) {
            self.init(high: 0, low: 0xFFFF << 32 | UInt64(number))
            return
        }
        let address = text.prefix { $0 != "%" }
        guard address.contains(":"), let groups = Self.groups(address) else { return nil }
        let halves = [groups[0..<4], groups[4..<8]].map { half in
            half.reduce(UInt64(0)) { $0 << 16 | UInt64($1) }
        }
        self.init(high: halves[0], low: halves[1])
    }

    /// 127.0.0.0/8 and ::1.
    package var isLoopback: Bool {
        isIPv4 ? low >> 24 & 0xFF == 127 : high == 0 && low == 1
    }

    /// The unit for counting connections: an IPv4 address, or the 64-bit prefix of an IPv6 address,
    /// which one Internet connection has.
    package var neighbourhood: IPAddress { isIPv4 ? self : IPAddress(high: high, low: 0) }

    /// The number of bits in an address of this kind.
    var bits: Int { isIPv4 ? 32 : 128 }

    /// Whether the first `bits` bits are the same.
    func agrees(with other: IPAddress, bits: Int) -> Bool {
        guard isIPv4 == other.isIPv4 else { return false }
        let count = isIPv4 ? bits + 96 : bits
        let highBits = min(count, 64)
        let lowBits = max(0, count - 64)
        return Self.agree(high, other.high, highBits) && Self.agree(low, other.low, lowBits)
    }

    private static func agree(_ a: UInt64, _ b: UInt64, _ bits: Int) -> Bool {
        bits == 0 || (a ^ b) >> UInt64(64 - bits) == 0
    }

    private static func ipv4(_ text: some StringProtocol) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var number: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy(\.isDigit),
                part.utf8.count == 1 || part.utf8.first != UInt8(ascii: "0"),
                let byte = UInt8(part)
            else { return nil }
            number = number << 8 | UInt32(byte)
        }
        return number
    }

    /// - Returns: Eight groups; nil if it is not an address.
    private static func groups(_ text: some StringProtocol) -> [UInt16]? {
        let sides = text.split(separator: "::", omittingEmptySubsequences: false)
        guard sides.count <= 2 else { return nil }
        guard let first = side(sides[0], isLast: sides.count == 1) else { return nil }
        guard sides.count == 2 else { return first.count == 8 ? first : nil }
        guard let last = side(sides[1], isLast: true), first.count + last.count <= 7 else {
            return nil
        }
        return first + Array(repeating: 0, count: 8 - first.count - last.count) + last
    }

    private static func side(_ text: some StringProtocol, isLast: Bool) -> [UInt16]? {
        guard !text.isEmpty else { return [] }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        var groups: [UInt16] = []
        for (index, part) in parts.enumerated() {
            if isLast, index == parts.count - 1, let number = ipv4(part) {
                groups += [UInt16(number >> 16), UInt16(truncatingIfNeeded: number)]
            } else {
                guard (1...4).contains(part.utf8.count), part.utf8.allSatisfy(\.isHexDigit),
                    let group = UInt16(part, radix: 16)
                else { return nil }
                groups.append(group)
            }
        }
        return groups.count <= 8 ? groups : nil
    }
}

extension IPAddress: CustomStringConvertible {
    package var description: String {
        if isIPv4 {
            return [24, 16, 8, 0].map { "\(low >> UInt64($0) & 0xFF)" }.joined(separator: ".")
        }
        let groups = [high, low].flatMap { half in
            [48, 32, 16, 0].map { UInt16(truncatingIfNeeded: half >> UInt64($0)) }
        }
        return Self.text(groups)
    }

    /// Leaves out the longest run of zeros, as RFC 5952 requires.
    private static func text(_ groups: [UInt16]) -> String {
        var best = 0..<0
        var start = 0
        for index in 0...8 where index == 8 || groups[index] != 0 {
            if index - start > max(best.count, 1) { best = start..<index }
            start = index + 1
        }
        func joined(_ part: ArraySlice<UInt16>) -> String {
            part.map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard !best.isEmpty else { return joined(groups[...]) }
        return joined(groups[..<best.lowerBound]) + "::" + joined(groups[best.upperBound...])
    }
}
