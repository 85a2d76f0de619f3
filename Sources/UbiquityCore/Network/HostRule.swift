// SPDX-License-Identifier: Apache-2.0

/// The `Host` headers for which a server answers. It must not answer a foreign web page that makes
/// a browser reach the server under the page's own name (DNS rebinding).
package struct HostRule: Hashable, Sendable {
    /// In lower case; nil if the server does not know its names and accepts any.
    private let names: Set<String>?

    /// - Parameters:
    ///   - names: The server's names, without ports; empty if none were configured.
    ///   - isReachedByOthers: Whether the server listens on a non-loopback address or is behind a
    ///     proxy. If not, all its clients are on this machine.
    package init(names: [String], isReachedByOthers: Bool) {
        self.names =
            names.isEmpty && isReachedByOthers ? nil : Set(names.map { Self.plain($0[...]) })
    }

    /// - Parameter host: The value of the header, with or without a port.
    package func admits(_ host: String) -> Bool {
        guard let names else { return true }
        let name = Self.name(in: host)
        return names.contains(Self.plain(name)) || PlainHTTPRule.isLoopback(String(name))
    }

    /// Also admits addresses, and requests that name no host: only a name can lead a foreign page's
    /// browser somewhere else. For what monitoring reads, which reaches a server by its address.
    package func admitsAddress(_ host: String) -> Bool {
        let name = Self.name(in: host)
        let address = name.hasPrefix("[") ? name.dropFirst().dropLast() : name
        return name.isEmpty || IPAddress(String(address)) != nil || admits(host)
    }

    /// - Parameter host: A name or an address, with or without a port.
    fileprivate static func name(in host: String) -> Substring {
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return host[...end] }
        return host.prefix { $0 != ":" }
    }

    /// A final dot only marks a name as fully qualified.
    private static func plain(_ name: Substring) -> String {
        (name.hasSuffix(".") ? name.dropLast() : name).lowercased()
    }
}

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

    /// Why another device could not use a server's address; nil if it can.
    /// - Parameter address: Such as `http://127.0.0.1:7717`.
    package static func obstacle(at address: String) -> Obstacle? {
        let parts = address.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count > 2 else { return nil }
        if isLoopback(String(HostRule.name(in: String(parts[2])))) { return .onlyThisMachine }
        return parts[0].lowercased() == "http:" ? .plainHTTP : nil
    }

    package enum Obstacle: Hashable, Sendable {
        case onlyThisMachine
        /// It would send its credential unencrypted.
        case plainHTTP
    }
}
