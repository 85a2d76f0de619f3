// SPDX-License-Identifier: Apache-2.0

/// A server's address with a code, as a QR code contains it: `https://ubiquity.example#7KQ2-M9XD-4TRW`.
///
/// The code is the fragment of a URL: a browser that opens the link keeps it to itself.
package struct SignInLink: Hashable, Sendable {
    package var server: String
    /// A sign-in code, or the user code of a device that waits for an approval.
    package var code: String

    private static let bytesMax = 2_048

    package init(server: String, code: String) {
        self.server = server
        self.code = code
    }

    /// Fails for text that is not an address with a code. The address is not checked.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax, let hash = text.lastIndex(of: "#") else {
            return nil
        }
        self.init(
            server: String(text[..<hash]), code: String(text[text.index(after: hash)...]))
        guard !server.isEmpty, !code.isEmpty else { return nil }
    }

    package var text: String { "\(server)#\(code)" }
}
