// SPDX-License-Identifier: Apache-2.0

internal import UbiquityTestWorker

/// What one writer of a storm attempted, and what of it was acknowledged. It knows only what the
/// writer said, and nothing of stores.
struct StormRecord: Sendable {
    let writer: String
    /// When each write was attempted: the first is that of number 1.
    private(set) var attempts: [UInt64] = []
    private(set) var acknowledgedCount = 0
    /// How often `synchronize()` was false.
    private(set) var refusals = 0
    /// The last acknowledged number of each key.
    private(set) var acknowledged: [String: Int] = [:]
    private var underWay: ClosedRange<Int>?

    init(writer: String) { self.writer = writer }

    var nextNumber: Int { attempts.count + 1 }

    mutating func add(_ message: WorkerMessage) {
        switch message {
        case .attempting(let numbers, let time): attempt(numbers, at: time)
        case .acknowledged: acknowledge()
        case .refused: refusals += 1
        default: break
        }
    }

    mutating func attempt(_ numbers: ClosedRange<Int>, at time: UInt64) {
        precondition(numbers.lowerBound == nextNumber, "A storm leaves no number out.")
        attempts += numbers.map { _ in time }
        underWay = numbers
    }

    /// All of the last attempt.
    mutating func acknowledge() {
        guard let numbers = underWay else { return }
        underWay = nil
        acknowledgedCount += numbers.count
        for number in numbers {
            for key in StormWrite(writer: writer, number: number).keys {
                acknowledged[key] = number
            }
        }
    }
}
