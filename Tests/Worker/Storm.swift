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
