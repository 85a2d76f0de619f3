// SPDX-License-Identifier: Apache-2.0

internal import UbiquityTestWorker

/// Whether what a store holds can be what the writers of a storm left behind.
struct StormVerdict {
    private let records: [String: StormRecord]

    init(_ records: [StormRecord]) {
        self.records = Dictionary(uniqueKeysWithValues: records.map { ($0.writer, $0) })
    }

    /// Of two writers' writes that far apart the later one wins, in nanoseconds. Closer ones may be
    /// either way around: each device takes the server's time as exactly as its answers are quick.
    static let simultaneous: UInt64 = 2_000_000_000

    /// Returns a sentence for each thing that is wrong.
    func complaints(about values: [String: String]) -> [String] {
        let acknowledged = records.values.flatMap(\.acknowledged.keys)
        let keys = Set(values.keys).union(acknowledged).sorted()
        return keys.compactMap { complaint(about: $0, values[$0]) }
            + complaints(aboutPairIn: values)
    }

    /// Returns complaints about the pair and the keys that only this writer writes, which hold even
    /// while others go on.
    func complaints(aboutOwnKeysOf writer: String, in values: [String: String]) -> [String] {
        let own = records[writer]?.acknowledged.keys.filter { $0.hasPrefix("own-") } ?? []
        return own.sorted().compactMap { complaint(about: $0, values[$0]) }
            + complaints(aboutPairIn: values)
    }

    private func complaints(aboutPairIn values: [String: String]) -> [String] {
        let pair = StormWrite.pair.map { values[$0] ?? "nothing" }
        return Set(pair).count == 1 ? [] : ["the pair is torn: \(pair)"]
    }

    private func complaint(about key: String, _ text: String?) -> String? {
        guard let text else { return "\(key) is gone" }
        guard let write = StormWrite(text: text), write.keys.contains(key),
            let record = records[write.writer], record.attempts.indices.contains(write.number - 1)
        else { return "\(key) has \(text), which nobody wrote there" }
        if let last = record.acknowledged[key], last > write.number {
            return "\(key) has \(text), but \(last) was acknowledged"
        }
        let time = record.attempts[write.number - 1]
        let missed = records.values.first { other in
            other.acknowledged[key].map { other.attempts[$0 - 1] > time + Self.simultaneous }
                ?? false
        }
        return missed.map {
            "\(key) has \(text), but the acknowledged \($0.writer):\($0.acknowledged[key]!) is "
                + "later"
        }
    }
}

/// The writes that one writer of a storm attempted, and those that were acknowledged. It only
/// knows what the writer said, and nothing about stores.
struct StormRecord: Sendable {
    let writer: String
    /// When each write was attempted: the first is that of number 1.
    private(set) var attempts: [UInt64] = []
    private(set) var acknowledgedCount = 0
    /// The number of times that `synchronize()` returned false.
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
        precondition(numbers.lowerBound == nextNumber, "A storm leaves not a number out.")
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
