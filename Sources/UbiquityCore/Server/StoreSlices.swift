// SPDX-License-Identifier: Apache-2.0

/// Chooses what a store holds in slices, each read at a moment of its own, such that what the slices
/// say last of each key is the store as it was at one moment: that of the last slice.
///
/// A round goes through the keys in their order. If the store has changed since it began, another round
/// goes through the keys that changed since then. Its slices have twice the size, so that in the end one
/// of them is a whole round, which is of one moment.
package struct StoreSlices: Hashable, Sendable {
    /// A choice of one key's values.
    package struct Item: Hashable, Sendable {
        /// Not a part.
        package var key: Key
        /// The places of the lines of the key and its parts that are not deletions. None if the key was
        /// removed, perhaps before any slice had it.
        package var places: [Int]
    }

    private let bytesMin: Int
    /// Where the previous round began; nil in the first one.
    private var since: Position?
    /// Where this round began; nil before its first slice.
    private var began: Position?
    /// The last key of the slice before; nil at the beginning of a round.
    private var last: Key?
    private var factor = 1
    /// Whether that was the last slice.
    package private(set) var isOver = false

    /// Whether the next slice is of the first round, in which nothing is removed.
    package var isFirstRound: Bool { since == nil }

    /// - Parameter bytesMin: See ``bytesMax(of:min:)``.
    package init(bytesMin: Int) { self.bytesMin = bytesMin }

    /// The bytes of a slice of these lines in a first round. A single key or version may have more.
    ///
    /// For each slice, all lines are gone through, so a store has at most some dozens of slices.
    package static func bytesMax(of lines: [HistoryRule.Line], min bytesMin: Int) -> Int {
        max(bytesMin, lines.reduce(0) { $0 + $1.bytes } / slicesMax)
    }

    private static let slicesMax = 64

    /// The next slice. It may be empty.
    /// - Parameter lines: All current records of the store, tombstones included.
    /// - Returns: Nil if there is none, because the store is another one, or what changed meanwhile is
    ///   not known any more.
    /// - Complexity: O(*n* log *n*) in the number of lines.
    package mutating func next(_ lines: [HistoryRule.Line], in state: StoreState) -> [Item]? {
        let position = state.lineage.position
        let began = began ?? position
        guard case .after = state.lineage.resumption(from: since ?? began) else { return nil }
        self.began = began
        let bytesMax = Self.bytesMax(of: lines, min: bytesMin) * factor
        var (items, bytes) = ([Item](), 0)
        for (key, places) in rest(of: lines) {
            let held = places.filter { !lines[$0].isDeletion }
            // No slice has had it.
            if held.isEmpty, since == nil { continue }
            bytes += places.reduce(0) { $0 + lines[$1].bytes }
            guard items.isEmpty || bytes <= bytesMax else {
                last = items.last?.key
                return items
            }
            items.append(Item(key: key, places: held))
        }
        if position == began {
            isOver = true
        } else {
            (since, self.began, last, factor) = (began, nil, nil, 2 * factor)
        }
        return items
    }

    /// The keys that this round has not had yet, with the places of their lines, in order.
    private func rest(of lines: [HistoryRule.Line]) -> [(key: Key, places: [Int])] {
        var keys: [Key: [Int]] = [:]
        for (place, line) in lines.enumerated() {
            let key = line.key.whole
            if let last, key <= last { continue }
            keys[key, default: []].append(place)
        }
        if let since {
            keys = keys.filter { $0.value.contains { lines[$0].came.revision > since.revision } }
        }
        return keys.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
