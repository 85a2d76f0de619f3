// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

/// Where a server is: `http://` or `https://`, a host, perhaps a port and a path before `/v1`.
package struct ServerAddress: Hashable, Sendable, CustomStringConvertible {
    /// Without a slash at the end.
    package let text: String
    /// The only certificates that this server may be known by, in PEM; nil: the system's.
    package let certificates: String?
    /// Nobody on the way can read what is sent: it is encrypted, or does not leave the machine.
    package let isPrivate: Bool

    /// - Throws: ``LinkFailure`` of the kind `refused` for anything else; also for an address with
    ///   a user, a query or a fragment, which would be sent nowhere or shown everywhere.
    package init(_ text: String, certificates: String? = nil) throws(LinkFailure) {
        // Not "host": to decode it, Foundation loads the tables of all scripts.
        let url = URLComponents(string: text)
        guard let url, let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            url.encodedHost?.isEmpty == false, url.user == nil, url.query == nil,
            url.fragment == nil
        else {
            throw LinkFailure(
                .refused,
                "\"\(text)\" is no server's address; one begins with http:// or https:// and has "
                    + "a host, such as http://127.0.0.1:7717")
        }
        var text = text
        while text.hasSuffix("/") { text.removeLast() }
        self.text = text
        self.certificates = certificates
        isPrivate = scheme == "https" || PlainHTTPRule.isLoopback(url.encodedHost ?? "")
    }

    /// - Throws: ``LinkFailure`` of the kind `refused` also for plain HTTP to another machine that
    ///   was not allowed, and for certificates that are none.
    package init(_ text: String, _ security: ConnectionSecurity) throws(LinkFailure) {
        try self.init(text, certificates: security.certificates)
        guard isPrivate || security.allowsPlainHTTP else {
            throw LinkFailure(
                .refused,
                "\(self) is plain HTTP: anybody on the way could read the credential; use https, "
                    + "or allow it (--allow-plain-http) where nobody else is on the way")
        }
        if let certificates { _ = try TrustedCertificates.configuration(pem: certificates) }
    }

    /// Where TLS is spoken; nil: nowhere.
    var endpoint: (host: String, port: Int)? {
        guard let url = URLComponents(string: text), url.scheme?.lowercased() == "https",
            var host = url.encodedHost
        else { return nil }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        return (host, url.port ?? 443)
    }

    package var description: String { text }

    /// An address below the server's. Each segment and the query's value may have any characters.
    func url(_ segments: String..., query: (name: String, value: String)? = nil) -> String {
        var url = text + "/v1"
        for segment in segments { url += "/" + Self.escape(segment) }
        if let query { url += "?\(query.name)=\(Self.escape(query.value))" }
        return url
    }

    /// All but the characters that RFC 3986 calls unreserved.
    private static func escape(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}
