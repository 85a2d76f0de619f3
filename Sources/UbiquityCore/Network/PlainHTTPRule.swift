// SPDX-License-Identifier: Apache-2.0

/// To whom a credential may travel without encryption, where the person did not allow more: to
/// this machine alone.
package enum PlainHTTPRule {
    /// - Parameter host: As it stands in the address, IPv6 with or without its brackets.
    /// - Returns: True for what surely is this machine: `localhost`, 127.0.0.0/8, and ::1. Not
    ///   `localhost.` and names below it, which a name server may be asked for, nor spellings of
    ///   numbers that only some resolvers take.
    package static func isLoopback(_ host: String) -> Bool {
        if host.utf8.count == 9, host.lowercased() == "localhost" { return true }
        if host.contains("%") { return false }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let address = IPAddress(isBracketed ? String(host.dropFirst().dropLast()) : host)
        return address?.isLoopback ?? false
    }
}
