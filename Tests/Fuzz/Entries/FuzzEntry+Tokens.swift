// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityServer

extension FuzzEntry {
    /// A token of an identity provider, and on the lines after it the provider's keys.
    static var tokens: FuzzEntry {
        FuzzEntry("tokens", stack: .system, bytesMax: 4_096) {
            Samples.tokens().mapValues { Array($0.utf8) }
        } check: { bytes in
            let lines = bytes.split(
                separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
            let header = TokenHeader(of: String(decoding: lines[0], as: UTF8.self))
            guard lines.count == 2, let keys = try? JSONWebKeys(parsing: Data(lines[1])) else {
                return
            }
            if let header { _ = keys.hasKey(for: header) }
        }
    }
}
