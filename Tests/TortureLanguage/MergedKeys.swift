// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The keys of the torture's apps whose writes merge.
package enum MergedKeys {
    package static let policies: [Key: MergePolicy] = MergePolicy.allCases.reduce(into: [:]) {
        if let key = try? Key(prefix + String($1.rawValue)) { $0[key] = $1 }
    }

    private static let prefix = "p."

    package static func contains(_ key: Key) -> Bool { policies[key.whole] != nil }
}
