// SPDX-License-Identifier: Apache-2.0

/// Decides to which hosts a credential may be sent without encryption, unless the person allowed
/// more: only to this machine.
package enum PlainHTTPRule {
    /// - Parameter host: The host as written in the address, IPv6 with or without brackets.
    /// - Returns: True if the host certainly is this machine: `localhost`, 127.0.0.0/8 or ::1. Not
    ///   `localhost.` or a name below it, for which a resolver may ask a name server, nor numbers
    ///   in spellings that only some resolvers accept.
    package static func isLoopback(_ host: String) -> Bool {
        if host.utf8.count == 9, host.lowercased() == "localhost" { return true }
        if host.contains("%") { return false }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let address = IPAddress(isBracketed ? String(host.dropFirst().dropLast()) : host)
        return address?.isLoopback ?? false
    }
}
