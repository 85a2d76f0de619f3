// SPDX-License-Identifier: Apache-2.0

/// The proxies whose `X-Forwarded-For` is believed.
package struct TrustedProxies: Hashable, Sendable {
    private let ranges: [AddressRange]

    /// A longer list loses its left end, which strangers wrote.
    private static let hopsMax = 32

    package init(_ ranges: [AddressRange] = []) { self.ranges = ranges }

    package func contains(_ address: IPAddress) -> Bool {
        ranges.contains { $0.contains(address) }
    }

    /// The origin of a request: the right-most address that is not a proxy's. Each proxy appends
    /// the address that it saw; everything to the left of a stranger's address is unverified.
    /// - Parameters:
    ///   - peer: The other end of the connection.
    ///   - forwarded: The values of all `X-Forwarded-For` fields, in order; only read
    ///     if the peer is a proxy.
    /// - Returns: The peer if it is not a proxy; the last proxy if what it reported is not an
    ///   address.
    package func origin(peer: IPAddress, forwarded: @autoclosure () -> [String]) -> IPAddress {
        guard !ranges.isEmpty, contains(peer) else { return peer }
        let hops = forwarded().flatMap { $0.split(separator: ",") }.suffix(Self.hopsMax)
        var origin = peer
        // A list may contain empty elements.
        for hop in hops.reversed() where hop.contains(where: { $0 != " " && $0 != "\t" }) {
            guard let address = Self.address(hop) else { return origin }
            origin = address
            if !contains(address) { return address }
        }
        return origin
    }

    /// Parses an address to which some proxies add brackets and a port.
    private static func address(_ hop: Substring) -> IPAddress? {
        var text = hop
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        if text.first == "[", let end = text.firstIndex(of: "]") {
            return IPAddress(text[text.index(after: text.startIndex)..<end])
        }
        if let address = IPAddress(text) { return address }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        return parts.count == 2 ? IPAddress(parts[0]) : nil
    }
}

/// An address, or all addresses with the same prefix, such as `10.0.0.0/8`.
package struct AddressRange: Hashable, Sendable, CustomStringConvertible {
    private let address: IPAddress
    private let bits: Int

    /// Fails for text that is neither.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = IPAddress(parts[0]) else { return nil }
        self.address = address
        guard parts.count == 2 else {
            bits = address.bits
            return
        }
        guard parts[1].utf8.count <= 3, parts[1].utf8.allSatisfy(\.isDigit),
            let bits = Int(parts[1]), bits <= address.bits
        else { return nil }
        self.bits = bits
    }

    package func contains(_ other: IPAddress) -> Bool { address.agrees(with: other, bits: bits) }

    /// Those of private networks, carriers and links, which nobody has on the Internet.
    package static let privates = [
        "10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
        "fc00::/7", "fe80::/10",
    ].compactMap(AddressRange.init)

    /// The address and the mask, as certificates have them.
    package var bytesAndMask: [UInt8] {
        let mask = (0..<address.bits / 8).map { index in
            ~UInt8(truncatingIfNeeded: 0xFF >> min(8, max(0, bits - 8 * index)))
        }
        return address.bytes + mask
    }

    package var description: String { "\(address)/\(bits)" }
}
