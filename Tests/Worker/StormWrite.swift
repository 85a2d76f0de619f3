// SPDX-License-Identifier: Apache-2.0

/// A numbered write of one of several writers. Of ten of them, six go to keys of the writer's own,
/// three to keys that all contend for, and one to two keys at once.
package struct StormWrite: Hashable, Sendable {
    /// A word without a colon.
    package var writer: String
    package var number: Int

    package init(writer: String, number: Int) { (self.writer, self.number) = (writer, number) }

    /// The write that left this value behind; nil: none did.
    package init?(text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = Int(parts[1]) else { return nil }
        self.init(writer: String(parts[0]), number: number)
    }

    package var text: String { "\(writer):\(number)" }

    /// More than one: they are one transaction.
    package var keys: [String] {
        switch number % 10 {
        case 0: Self.pair
        // Seven and a hundred: every number of a key comes up.
        case 1...3: ["shared-\(number % 7)"]
        default: ["own-\(writer)-\(number % 100)"]
        }
    }

    /// Nobody may ever see one of them without the other.
    package static let pair = ["pair-a", "pair-b"]
}
