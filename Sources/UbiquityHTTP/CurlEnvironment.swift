// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
internal import UbiquityCore

/// The proxies and trusted certificates that a process's environment names. Curl itself would read
/// the former for each request, while other threads may write.
struct CurlEnvironment: Sendable {
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR`; nil for the system's.
    let certificateFile: String?
    let certificateFolder: String?
    /// By the scheme of the URL.
    private var proxies: [String: String] = [:]
    /// The hosts that need none.
    private let exceptions: [Substring]

    init(_ environment: [String: String]) {
        func value(_ names: String...) -> String? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty && !$0.utf8.contains(0) }
        }
        certificateFile = value("SSL_CERT_FILE")
        certificateFolder = value("SSL_CERT_DIR")
        let any = value("all_proxy", "ALL_PROXY")
        // In capitals, a CGI program has the value of a request's field.
        proxies["http"] = value("http_proxy") ?? any
        proxies["https"] = value("https_proxy", "HTTPS_PROXY") ?? any
        exceptions =
            value("no_proxy", "NO_PROXY")?.split { $0 == "," || $0 == " " || $0 == "\t" } ?? []
    }

    /// The proxy for a URL, in the form of its variable; nil for none, as for this machine.
    func proxy(for url: String) -> String? {
        guard !proxies.isEmpty, let (scheme, host) = Self.parts(of: url),
            let proxy = proxies[scheme], !PlainHTTPRule.isLoopback(host),
            !exceptions.contains(where: { Self.names($0, host) })
        else { return nil }
        return proxy
    }

    /// Removes the user and the password.
    static func withoutUser(_ proxy: String) -> String {
        let (scheme, rest) = split(proxy)
        // Of all, because a password may have a slash.
        let host = rest.lastIndex(of: "@").map { rest[$0...].dropFirst() } ?? rest
        return String(scheme + host)
    }

    private static func split(_ url: String) -> (scheme: Substring, rest: Substring) {
        guard let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") else {
            return ("", url[...])
        }
        let start = url.index(colon, offsetBy: 3)
        return (url[..<start], url[start...])
    }

    /// The scheme and the host, both in lower case.
    private static func parts(of url: String) -> (scheme: String, host: String)? {
        let (scheme, rest) = split(url)
        var authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let at = authority.lastIndex(of: "@") { authority = authority[at...].dropFirst() }
        let host =
            authority.hasPrefix("[")
            ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
        guard !host.isEmpty else { return nil }
        return (scheme.dropLast(3).lowercased(), host.lowercased())
    }

    /// Whether an element of `NO_PROXY` names the host: all hosts, its name or a domain above it, or
    /// its address or a range.
    private static func names(_ element: Substring, _ host: String) -> Bool {
        if element == "*" { return true }
        if let address = IPAddress(host) {
            return AddressRange(String(element))?.contains(address) ?? false
        }
        var domain = element.lowercased()
        if domain.hasPrefix(".") { domain.removeFirst() }
        if domain.hasSuffix(".") { domain.removeLast() }
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        return !domain.isEmpty && (name == domain || name.hasSuffix("." + domain))
    }
}
#endif
