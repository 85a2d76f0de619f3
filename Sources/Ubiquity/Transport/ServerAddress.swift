// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

/// Where a server is: `http://` or `https://`, a host, perhaps a port and a path before `/v1`.
package struct ServerAddress: Hashable, Sendable, CustomStringConvertible {
    /// Without a slash at the end.
    package let text: String

    /// - Throws: ``LinkFailure`` of the kind `refused` for anything else; also for an address with
    ///   a user, a query or a fragment, which would be sent nowhere or shown everywhere.
    package init(_ text: String) throws(LinkFailure) {
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
