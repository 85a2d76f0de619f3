// SPDX-License-Identifier: Apache-2.0

/// The scheduled events in the order of their times. Events of the same time are in the order of
/// scheduling.
package struct EventQueue {
    private struct Item {
        var time: Int64
        var number: UInt64
        var body: () -> Void

        func isBefore(_ other: Item) -> Bool {
            (time, number) < (other.time, other.number)
        }
    }

    /// A binary heap.
    private var heap: [Item] = []
    private var lastNumber: UInt64 = 0

    package init() {}

    package var nextTime: Int64? { heap.first?.time }

    package mutating func add(at time: Int64, _ body: @escaping () -> Void) {
        lastNumber += 1
        heap.append(Item(time: time, number: lastNumber, body: body))
        var child = heap.count - 1
        while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    package mutating func removeNext() -> (time: Int64, body: () -> Void)? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        return (first.time, first.body)
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].isBefore(heap[least]) {
                least = child
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}

/// The true time, which no clock shows: milliseconds since 1970.
package final class TrueTime {
    package var now: Int64

    package init(now: Int64 = 1_800_000_000_000) { self.now = now }
}
