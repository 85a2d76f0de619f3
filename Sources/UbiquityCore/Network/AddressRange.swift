// SPDX-License-Identifier: Apache-2.0

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
        guard parts[1].utf8.count <= 3, parts[1].utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }),
            let bits = Int(parts[1]), bits <= address.bits
        else { return nil }
        self.bits = bits
    }

    package func contains(_ other: IPAddress) -> Bool { address.agrees(with: other, bits: bits) }

    package var description: String { "\(address)/\(bits)" }
}
