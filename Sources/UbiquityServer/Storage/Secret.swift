// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Unguessable texts from the system's secure random source.
enum Secret {
    static let devicePrefix = "ubd_"
    static let operatorPrefix = "ubo_"

    /// Makes a text of the prefix and 32 random bytes in base64url.
    static func random(prefix: String) -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let text = Data(bytes).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
        return prefix + text
    }
}
