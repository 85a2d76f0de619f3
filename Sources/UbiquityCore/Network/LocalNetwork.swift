// SPDX-License-Identifier: Apache-2.0

/// An address of one of a machine's network interfaces.
package struct InterfaceAddress: Hashable, Sendable {
    /// Such as `eth0`.
    package var interface: String
    package var address: IPAddress

    package init(_ interface: String, _ address: IPAddress) {
        (self.interface, self.address) = (interface, address)
    }
}

/// The addresses by which other machines of a local network reach this one: those of IPv4, the best of
/// each interface first.
package struct LocalNetwork: Hashable, Sendable {
    /// The best first. Bounded.
    package let addresses: [InterfaceAddress]

    private static let addressesMax = 32

    /// The interfaces of containers and virtual machines, which no other machine reaches.
    private static let internalNames = [
        "br-", "cali", "cni", "docker", "flannel", "incusbr", "lxcbr", "lxdbr", "podman", "vboxnet",
        "veth", "virbr", "vmnet",
    ]

    /// - Parameters:
    ///   - found: All addresses of the machine, in the system's order.
    ///   - defaultInterface: The interface to the Internet; nil if there is none.
    package init(_ found: [InterfaceAddress], defaultInterface: String?) {
        let usable = found.filter { found in
            found.address.isIPv4 && !found.address.isLoopback && !found.address.isLinkLocal
                && !found.address.isUnspecified
        }
        let outer = usable.filter { found in
            !Self.internalNames.contains(where: found.interface.hasPrefix)
        }
        /// The lowest is the best.
        func rank(_ found: InterfaceAddress) -> Int {
            (found.interface == defaultInterface ? 0 : 4) + (found.address.isPrivate ? 0 : 2)
        }
        let candidates = (outer.isEmpty ? usable : outer).enumerated()
        let sorted = candidates.sorted { a, b in
            (rank(a.element), a.offset) < (rank(b.element), b.offset)
        }
        addresses = sorted.prefix(Self.addressesMax).map(\.element)
    }

    /// The address to print; nil if no other machine can reach this one.
    package var first: InterfaceAddress? { addresses.first }

    /// One address of each other interface.
    package var others: [InterfaceAddress] {
        var known: Set = [first?.interface]
        return addresses.filter { known.insert($0.interface).inserted }
    }

    /// The interface of the default route with the lowest metric.
    /// - Parameter routes: The text of Linux's `/proc/self/net/route`.
    package static func defaultInterface(inRoutes routes: String) -> String? {
        let defaults = routes.split(separator: "\n").compactMap { line -> (String, Int)? in
            let fields = line.split { $0 == "\t" || $0 == " " }
            guard fields.count > 7, fields[1] == "00000000", fields[7] == "00000000" else {
                return nil
            }
            return (String(fields[0]), Int(fields[6]) ?? .max)
        }
        return defaults.min { $0.1 < $1.1 }?.0
    }
}

/// The names and addresses for which the authority of a house may vouch: those that nobody has on the
/// Internet, and names that the operator gave. So whoever steals its key cannot pose as any other site.
package enum HouseConstraints {
    /// Names that only local networks have, by RFC 6761, 6762 and 8375 and ICANN's decision.
    package static let domains = ["home.arpa", "internal", "local", "localhost"]

    package static let ranges =
        AddressRange.privates + ["127.0.0.0/8"].compactMap(AddressRange.init)

    /// Whether a name is below one of the domains, or one itself.
    package static func permits(_ name: String, domains: [String]) -> Bool {
        domains.contains { name == $0 || name.hasSuffix("." + $0) }
    }

    package static func permits(_ address: IPAddress) -> Bool {
        ranges.contains { $0.contains(address) }
    }

    /// The name of a machine as its network says it without a name server, such as `pi.local`; nil if
    /// the system's name cannot be part of one.
    package static func localName(ofMachine name: String) -> String? {
        let label = name.prefix { $0 != "." }.lowercased()
        let isLabel =
            (1...63).contains(label.utf8.count)
            && label.utf8.allSatisfy { byte in
                byte.isDigit || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    || byte == UInt8(ascii: "-")
            }
        return isLabel && label != "localhost" ? label + ".local" : nil
    }
}

/// When a certificate that a server made for itself has to be made anew, with the same key.
package enum CertificateRenewal {
    /// - Parameters:
    ///   - valid: The seconds since 1970 in which the certificate is valid.
    ///   - names: The names and addresses that it has.
    ///   - wanted: Those that it should have. Some more do no harm.
    package static func isDue(
        valid: Range<Int64>, names: Set<String>, wanted: Set<String>, now: Int64
    ) -> Bool {
        // Outside of the range too, as after a start with a wrong clock.
        let rest = valid.upperBound - now
        return !valid.contains(now) || rest < (valid.upperBound - valid.lowerBound) / 3
            || !wanted.isSubset(of: names)
    }
}
