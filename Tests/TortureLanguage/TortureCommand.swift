// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A command of the torture to an app, one JSON document a line.
package enum TortureCommand: Codable, Hashable, Sendable {
    case write(TortureWrite)
    /// Does something to one of the keys whose writes merge, which it draws by chance.
    case merge(number: Int, seed: UInt64)
    /// Declares the policies of these keys: until then it is an app that knows nothing of them.
    case declare
    /// `synchronize()`.
    case save
    /// `synchronizeNow()`, of a number of its own. The app goes on meanwhile.
    case roundTrip(Int)
    /// Reports a ``TortureView``.
    case show
    /// Lets the store go and makes it again at once.
    case reopen
}

/// One transaction. Each of its keys has a write with a number of its own.
package struct TortureWrite: Codable, Hashable, Sendable {
    package var batch: Int
    /// The number of the first key's write; the others follow.
    package var first: Int
    package var keys: [String]
    /// The number of characters in the values besides the mark; nil removes the keys.
    package var padding: Int?

    package init(batch: Int, first: Int, keys: [String], padding: Int?) {
        (self.batch, self.first) = (batch, first)
        (self.keys, self.padding) = (keys, padding)
    }

    /// The value for the key at this place; nil removes it.
    package func text(at place: Int) -> String? {
        padding.map { "\(first + place):\(batch):" + String(repeating: "x", count: $0) }
    }
}

/// The keys of the torture's apps whose writes merge.
package enum MergedKeys {
    package static let policies: [Key: MergePolicy] = MergePolicy.allCases.reduce(into: [:]) {
        if let key = try? Key(prefix + String($1.rawValue)) { $0[key] = $1 }
    }

    private static let prefix = "p."

    package static func contains(_ key: Key) -> Bool { policies[key.whole] != nil }
}
