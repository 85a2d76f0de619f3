// SPDX-License-Identifier: Apache-2.0

/// Whose word about the origin of a request is believed.
package struct TrustedProxies: Hashable, Sendable {
    private let ranges: [AddressRange]

    /// A list of more is cut at its left, which is what strangers wrote.
    private static let hopsMax = 32

    package init(_ ranges: [AddressRange] = []) { self.ranges = ranges }

    package func contains(_ address: IPAddress) -> Bool {
        ranges.contains { $0.contains(address) }
    }

    /// Where a request comes from: the right-most address that is no proxy's. Each proxy adds the
    /// address that it saw at the right; what stands left of a stranger's is the stranger's word.
    /// - Parameters:
    ///   - peer: Whom the connection is with.
    ///   - forwarded: The values of all fields `X-Forwarded-For`, in their order.
    /// - Returns: The peer where it is no proxy; the last proxy where what it says is no address.
    package func origin(peer: IPAddress, forwarded: [String]) -> IPAddress {
        guard !ranges.isEmpty, contains(peer) else { return peer }
        let hops = forwarded.flatMap { $0.split(separator: ",") }.suffix(Self.hopsMax)
        var origin = peer
        // A list may have empty elements.
        for hop in hops.reversed() where hop.contains(where: { $0 != " " && $0 != "\t" }) {
            guard let address = Self.address(hop) else { return origin }
            origin = address
            if !contains(address) { return address }
        }
        return origin
    }

    /// Some proxies add a port, and brackets.
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
