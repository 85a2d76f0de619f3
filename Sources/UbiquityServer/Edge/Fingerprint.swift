// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation

/// The digest by which people compare certificates.
package enum Fingerprint {
    /// As browsers show it: pairs of digits with colons. Nil if the text has no certificate.
    package static func sha256(ofPEM text: String) -> String? {
        let lines = text.split(separator: "\n").drop { !$0.hasPrefix("-----BEGIN") }.dropFirst()
            .prefix { !$0.hasPrefix("-----END") }
        guard let der = Data(base64Encoded: lines.joined()), !der.isEmpty else { return nil }
        return SHA256.hash(data: der).map { String(format: "%02X", $0) }.joined(separator: ":")
    }
}

extension Sequence<UInt8> {
    /// Two digits for each byte, in lower case.
    var hexadecimal: String {
        map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}
