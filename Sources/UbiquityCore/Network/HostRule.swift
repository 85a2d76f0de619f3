// SPDX-License-Identifier: Apache-2.0

/// For whom a request must be, by its header `Host`, so that a server does not answer a page of
/// somebody else's that has a browser reach it under that page's name (DNS rebinding).
package struct HostRule: Hashable, Sendable {
    /// In lower case; nil: the server does not know its names, and takes any.
    private let names: Set<String>?

    /// - Parameters:
    ///   - names: What the server is called, without ports; none: it was not told.
    ///   - isReachedByOthers: Whether it listens on another address than this machine's own, or a proxy
    ///     stands before it. If not, it is this machine for everybody who may ask.
    package init(names: [String], isReachedByOthers: Bool) {
        self.names =
            names.isEmpty && isReachedByOthers ? nil : Set(names.map { Self.plain($0[...]) })
    }

    /// - Parameter host: The value of the header, with a port or without one.
    package func admits(_ host: String) -> Bool {
        guard let names else { return true }
        let name = Self.name(in: host)
        return names.contains(Self.plain(name)) || PlainHTTPRule.isLoopback(String(name))
    }

    private static func name(in host: String) -> Substring {
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return host[...end] }
        return host.prefix { $0 != ":" }
    }

    /// A final point says only that the name is whole.
    private static func plain(_ name: Substring) -> String {
        (name.hasSuffix(".") ? name.dropLast() : name).lowercased()
    }
}
