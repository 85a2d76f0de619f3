// SPDX-License-Identifier: Apache-2.0

/// The identity provider as the page for people needs it: the page asks the provider itself.
package struct PageProvider: Hashable, Sendable {
    package let issuer: String
    /// The identifier that the provider has for the page, which is a public client.
    package let client: String
    /// The only place besides the server that the page may send requests to: scheme, host and port.
    package let origin: String

    /// Nil unless the issuer is an address by HTTPS, or by HTTP on the machine itself, with a plain
    /// host name: it becomes a part of a header.
    package init?(issuer: String, client: String) {
        let pattern = #/(https?):\/\/([A-Za-z0-9.\-]{1,253})(:[0-9]{1,5})?(\/[!-~]*)?/#
        guard !client.isEmpty, let match = issuer.wholeMatch(of: pattern),
            !issuer.contains(where: { "?#".contains($0) }),
            match.1 == "https" || match.2 == "localhost" || match.2 == "127.0.0.1"
        else { return nil }
        self.issuer = issuer
        self.client = client
        origin = "\(match.1)://\(match.2)\(match.3 ?? "")"
    }
}
