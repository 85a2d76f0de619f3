// SPDX-License-Identifier: Apache-2.0

/// The origins of web pages that may use the server, besides pages of the server itself. A browser
/// shows an answer to a page of another origin only if the answer allows that (the CORS protocol of
/// the Fetch Standard).
package struct OriginRule: Hashable, Sendable {
    private let origins: Set<String>

    /// - Parameter origins: Those for which ``origin(_:)`` is not nil; others are ignored.
    package init(_ origins: [String]) { self.origins = Set(origins.compactMap(Self.origin)) }

    /// Whether no other origin may use the server.
    package var isEmpty: Bool { origins.isEmpty }

    /// - Parameter origin: The value of the header `Origin`.
    package func admits(_ origin: String) -> Bool { origins.contains(origin) }

    /// The origin as browsers write it, such as `https://notes.example`: in lower case, and without
    /// the scheme's usual port.
    /// - Returns: Nil for anything else, also for `*` and `null`, which name no site.
    package static func origin(_ text: String) -> String? {
        let text = text.lowercased()
        let form = #/([a-z][a-z0-9+.\-]*):\/\/(\[[0-9a-f:.]+\]|[a-z0-9._\-]+)(?::([0-9]{1,5}))?/#
        guard let match = text.wholeMatch(of: form) else { return nil }
        let usual = ["http": "80", "https": "443"][match.1]
        guard let port = match.3, port != usual ?? "" else { return "\(match.1)://\(match.2)" }
        return text
    }
}
