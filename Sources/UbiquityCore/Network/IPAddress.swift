// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

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
        // C reads no further than a zero byte.
        guard text.utf8.count <= 64, !text.utf8.contains(0) else { return nil }
        var number: UInt32 = 0
        if inet_pton(AF_INET, String(text), &number) == 1 {
            self.init(high: 0, low: 0xFFFF << 32 | UInt64(UInt32(bigEndian: number)))
            return
        }
        var halves: [UInt64] = [0, 0]
        guard inet_pton(AF_INET6, String(text.prefix { $0 != "%" }), &halves) == 1 else {
            return nil
        }
        self.init(high: UInt64(bigEndian: halves[0]), low: UInt64(bigEndian: halves[1]))
    }

    /// Fails unless there are as many bytes as ``bytes`` has.
    package init?(bytes: [UInt8]) {
        func number(_ bytes: some Sequence<UInt8>) -> UInt64 {
            bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
        switch bytes.count {
        case 4: self.init(high: 0, low: 0xFFFF << 32 | number(bytes))
        case 16: self.init(high: number(bytes.prefix(8)), low: number(bytes.suffix(8)))
        default: return nil
        }
    }

    /// 127.0.0.0/8 and ::1.
    package var isLoopback: Bool {
        isIPv4 ? low >> 24 & 0xFF == 127 : high == 0 && low == 1
    }

    /// 0.0.0.0 and `::`, which stand for all addresses of the machine.
    package var isUnspecified: Bool { isIPv4 ? low == 0xFFFF << 32 : high == 0 && low == 0 }

    /// An address that is only valid on one link: 169.254.0.0/16 and fe80::/10.
    package var isLinkLocal: Bool {
        isIPv4 ? low >> 16 == 0xFFFF_A9FE : high >> 54 == 0xFE80 >> 6
    }

    /// Whether nobody has this address on the Internet.
    package var isPrivate: Bool { AddressRange.privates.contains { $0.contains(self) } }

    /// In the order of the network: four for IPv4, otherwise sixteen.
    package var bytes: [UInt8] {
        let halves = isIPv4 ? [low << 32] : [high, low]
        let bytes = halves.flatMap { half in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> $0) }
        }
        return Array(bytes.prefix(bits / 8))
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
}

extension IPAddress: CustomStringConvertible {
    package var description: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
            let size = socklen_t(text.count)
            let start =
                isIPv4
                ? inet_ntop(
                    AF_INET, [UInt32(truncatingIfNeeded: low).bigEndian], text.baseAddress, size)
                : inet_ntop(AF_INET6, [high.bigEndian, low.bigEndian], text.baseAddress, size)
            return String(cString: start!)
        }
    }
}
