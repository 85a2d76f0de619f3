// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
package import Ubiquity

/// Many writes, as fast as the disk acknowledges them.
struct Storm {
    private let writer: String
    private let numbers: ClosedRange<Int>

    /// - Parameter numbers: The first and the last, with a space between them.
    init(writer: String, numbers: String) throws {
        let bounds = numbers.split(separator: " ").compactMap { Int($0) }
        guard bounds.count == 2, bounds[0] <= bounds[1] else {
            throw ValidationError("no numbers: \(numbers)")
        }
        self.writer = writer
        self.numbers = bounds[0]...bounds[1]
    }

    func run(on store: UbiquitousKeyValueStore) throws {
        var next = numbers.lowerBound
        while next <= numbers.upperBound {
            let batch = next...min(next + Self.batchSize - 1, numbers.upperBound)
            try write(batch, to: store)
            next = batch.upperBound + 1
        }
        MessageOutput.print(WorkerMessage.stormOver)
    }

    /// Writes for one `synchronize()`.
    private static let batchSize = 3

    private func write(_ batch: ClosedRange<Int>, to store: UbiquitousKeyValueStore) throws {
        // Before the first of them, or what a killed process had written would be nobody's.
        MessageOutput.print(WorkerMessage.attempting(batch, at: MonotonicTime.now))
        for number in batch { try StormWrite(writer: writer, number: number).make(in: store) }
        let last = batch.upperBound
        MessageOutput.print(
            store.synchronize()
                ? WorkerMessage.acknowledged(through: last) : .refused(through: last))
    }
}

extension StormWrite {
    package func make(in store: UbiquitousKeyValueStore) throws {
        guard keys.count > 1 else { return store.set(text, forKey: keys[0]) }
        try store.performBatch { batch in
            for key in keys { try batch.set(text, forKey: key) }
        }
    }
}

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
