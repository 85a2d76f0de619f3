// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore
internal import UbiquityHTTP

/// A server's address: `http://` or `https://`, a host, optionally a port and a path before `/v1`; or
/// a socket on this machine.
package struct ServerAddress: Hashable, Sendable, CustomStringConvertible {
    /// Without a trailing slash.
    package let text: String
    /// The only certificates accepted for this server, in PEM; nil means the system's.
    package let certificates: String?
    /// As ``SignedInAccount/pin``.
    let pin: String?
    /// Whether nobody on the way can read what is sent: it is encrypted, or does not leave the
    /// machine.
    package let isPrivate: Bool
    package let description: String
    /// The path of the socket; nil for a server on the network.
    let socket: String?

    /// - Throws: ``LinkFailure`` of the kind `refused` for anything else, including an address with
    ///   a user, a query or a fragment, which would be ignored or exposed.
    package init(
        _ text: String, certificates: String? = nil, pin: String? = nil
    ) throws(LinkFailure) {
        // Not "host", because decoding it makes Foundation load the tables of all scripts.
        let url = URLComponents(string: text)
        guard let url, let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            url.encodedHost?.isEmpty == false, url.user == nil, url.query == nil,
            url.fragment == nil
        else {
            throw LinkFailure(
                .refused,
                "\"\(text)\" is not a server address; an address begins with http:// or https:// "
                    + "and has a host, such as http://127.0.0.1:7717")
        }
        var text = text
        while text.hasSuffix("/") { text.removeLast() }
        (self.text, description) = (text, text)
        self.certificates = certificates
        self.pin = pin
        socket = nil
        isPrivate = scheme == "https" || PlainHTTPRule.isLoopback(url.encodedHost ?? "")
    }

    /// A server's Unix domain socket.
    /// - Parameter displayPath: The path in messages for people.
    package init(socket path: String, displayPath: String) {
        // HTTP requires a host.
        text = "http://localhost"
        (certificates, pin, isPrivate, description) = (nil, nil, true, displayPath)
        socket = path
    }

    /// The server of the device that is signed in.
    package init(of account: SignedInAccount) throws(LinkFailure) {
        try self.init(account.server, certificates: account.certificates, pin: account.pin)
    }

    /// - Throws: ``LinkFailure`` of the kind `refused`, also for plain HTTP to another machine
    ///   without permission, and for invalid certificates.
    package init(
        _ text: String, _ security: ConnectionSecurity, pin: String? = nil
    ) throws(LinkFailure) {
        try self.init(text, certificates: security.certificates, pin: pin)
        guard isPrivate || security.allowsPlainHTTP else {
            throw LinkFailure(
                .refused,
                "\(self) is plain HTTP: anybody on the network could read the credential; use "
                    + "https, or allow plain HTTP (--allow-plain-http) on a network that nobody "
                    + "else can read")
        }
        if let certificates, HTTPRequest.certificates(in: certificates).isEmpty {
            throw LinkFailure(.refused, Self.noCertificate)
        }
    }

    static let noCertificate =
        "the file to trust is not a certificate: a PEM file begins with -----BEGIN CERTIFICATE-----"

    /// A URL below the server's address. The segments and the query's values may contain any
    /// characters.
    func url(_ segments: [String], query: [(name: String, value: String)] = []) -> String {
        var url = text + "/v1"
        for segment in segments { url += "/" + Self.escape(segment) }
        let fields = query.map { "\($0.name)=\(Self.escape($0.value))" }
        return fields.isEmpty ? url : url + "?" + fields.joined(separator: "&")
    }

    /// Escapes all characters except those that RFC 3986 calls unreserved.
    private static func escape(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}

/// The servers to which a person allows a credential to be sent, beyond what is safe by default.
package struct ConnectionSecurity: Hashable, Sendable {
    /// The only certificates accepted for the server, in PEM: those of the issuer, or the server's
    /// own if it is self-signed. Nil means the system's.
    package var certificates: String?
    /// Whether plain HTTP to other machines is allowed.
    package var allowsPlainHTTP: Bool

    package init(certificates: String? = nil, allowsPlainHTTP: Bool = false) {
        self.certificates = certificates
        self.allowsPlainHTTP = allowsPlainHTTP
    }
}
