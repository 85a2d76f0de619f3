// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1

/// The routes that a port or a socket has, by their paths.
struct RouteTable: Sendable {
    private var addresses: [Address] = []
    /// The methods of all of them, as in the header.
    private let allow: String

    /// - Parameter routes: The frequent ones first, because they are searched in this order. No path
    ///   may match two patterns.
    init(_ routes: [Route]) {
        allow = Self.allow(routes)
        for route in routes where !addresses.contains(where: { $0.path.text == route.path }) {
            let same = routes.filter { $0.path == route.path }
            addresses.append(
                Address(path: PathPattern(route.path), routes: same, allow: Self.allow(same)))
        }
    }

    /// Answers a request by the route of its address. `OPTIONS *` concerns the server rather than an
    /// address.
    func answer(_ exchange: Exchange, _ gate: Gate) throws(Problem) {
        let (method, path) = (exchange.request.method, exchange.request.path)
        if method == .OPTIONS, path == "*" { return exchange.answer(Self.options(allow)) }
        for address in addresses {
            guard let parameters = address.path.parameters(in: path) else { continue }
            (exchange.route, exchange.parameters) = (address.path.text, parameters)
            return try address.answer(exchange, gate)
        }
        throw .notFound
    }

    private struct Address: Sendable {
        let path: PathPattern
        let routes: [Route]
        let allow: String

        /// HEAD is answered like GET, and OPTIONS lists the methods for anybody.
        func answer(_ exchange: Exchange, _ gate: Gate) throws(Problem) {
            let method = exchange.request.method
            if method == .OPTIONS { return exchange.answer(RouteTable.options(allow)) }
            let sought = method == .HEAD ? .GET : method
            guard let route = routes.first(where: { $0.method == sought }) else {
                throw .methodNotAllowed(allow)
            }
            route.answer(exchange, gate)
        }
    }

    private static func options(_ allow: String) -> Answer {
        Answer(.noContent, headers: ["Allow": allow])
    }

    private static func allow(_ routes: [Route]) -> String {
        var names = Set(routes.map(\.method.rawValue)).union(["OPTIONS"])
        if names.contains("GET") { names.insert("HEAD") }
        return names.sorted().joined(separator: ", ")
    }
}

/// A path with the names of its parameters in braces. A parameter is what is between two slashes, and
/// not empty. A path may end with a slash, too.
struct PathPattern: Sendable {
    let text: String
    /// Text and the names of parameters by turns, beginning with text.
    private let parts: [Substring]

    init(_ text: String) {
        self.text = text
        parts = Self.withoutSlash(text[...]).split(omittingEmptySubsequences: false) {
            $0 == "{" || $0 == "}"
        }
    }

    /// - Parameter path: Not decoded, nor are the parameters.
    /// - Returns: Nil if the path does not match.
    func parameters(in path: Substring) -> [(name: Substring, text: Substring)]? {
        var rest = Self.withoutSlash(path).utf8
        var found: [(name: Substring, text: Substring)] = []
        for (index, part) in parts.enumerated() {
            if index.isMultiple(of: 2) {
                guard rest.starts(with: part.utf8) else { return nil }
                rest = rest.dropFirst(part.utf8.count)
            } else {
                let text = rest.prefix { $0 != UInt8(ascii: "/") }
                guard !text.isEmpty else { return nil }
                found.append((part, Substring(text)))
                rest = rest.dropFirst(text.count)
            }
        }
        return rest.isEmpty ? found : nil
    }

    private static func withoutSlash(_ path: Substring) -> Substring {
        path.utf8.last == UInt8(ascii: "/") ? path.dropLast() : path
    }
}
