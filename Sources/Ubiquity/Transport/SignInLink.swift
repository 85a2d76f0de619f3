// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

/// A server's address with a code, as a QR code contains it: `https://ubiquity.example#7KQ2-M9XD-4TRW`.
/// After the code, there may be a semicolon and the pin of the server's key, which is trusted then
/// whatever its certificate says: `;sha256//` and 44 characters.
///
/// The code is the fragment of a URL: a browser that opens the link keeps it to itself.
package struct SignInLink: Hashable, Sendable {
    package var server: String
    /// A sign-in code, with the pin if there is one; or the user code of a device that waits for an
    /// approval.
    package var code: String

    private static let bytesMax = 2_048

    package init(server: String, code: String, pin: String? = nil) {
        self.server = server
        self.code = pin.map { "\(code);\($0)" } ?? code
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

    /// The code itself and the pin.
    /// - Throws: ``LinkFailure`` of the kind `refused` for what is no pin: without it, another server
    ///   would be trusted than the link says.
    static func parts(of code: String) throws(LinkFailure) -> (code: String, pin: String?) {
        guard let mark = code.firstIndex(of: ";") else { return (code, nil) }
        let pin = code[code.index(after: mark)...]
        let digest = pin.hasPrefix("sha256//") ? Data(base64Encoded: String(pin.dropFirst(8))) : nil
        guard digest?.count == 32 else {
            throw LinkFailure(
                .refused, "the server's key in the link cannot be read; copy the whole link again")
        }
        return (String(code[..<mark]), String(pin))
    }
}

extension KeyCode {
    /// The code to sign in with at a server that was given besides, which counts rather than the address
    /// that a code with a secret may have in front.
    package var signInCode: String {
        (secret == nil ? nil : SignInLink(front)?.code) ?? front
    }

    /// The code of a device that waits for an approval. If only the front of a code was mistyped, what
    /// follows the semicolon is a secret, and not the server's to see.
    package var userCode: String {
        String((SignInLink(front)?.code ?? front).prefix { $0 != ";" })
    }
}
