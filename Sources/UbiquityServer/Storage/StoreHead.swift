// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The stored form of a store's state, except its revision and newest time, which are beside it: a
/// sequence of numbers, seven bits a byte, the lowest first, the eighth bit says that more follow.
///
/// First the fields of ``StoreState``; then the number of spans that are rows of `span`, the number
/// of the others, and these; then the number of devices in the version vector, and their times; then
/// the history's fields, and the generation. A ``VersionPack`` may follow, up to the end.
enum StoreHead {
    /// Begins the value, in case its fields ever change.
    private static let version: UInt64 = 1

    /// The most spans in a value, a few bytes each. When they become more, all but the last become
    /// rows.
    static let spansMax = 8

    /// The most bytes of a value with a ``VersionPack``. SQLite puts a row of more than a quarter of a
    /// page into pages of its own, which each push would write, too.
    static let bytesMax = 950

    /// The value without a pack.
    /// - Parameter spanRows: The number of spans that are stored as rows, and not in the value.
    static func value(_ state: StoreState, spanRows: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(128 + 20 * state.accepted.times.count)
        func add(_ number: UInt64) { bytes.append(number: number) }
        func add(_ number: Int64) { add(UInt64(bitPattern: number)) }
        func add(_ number: Int) { add(Int64(number)) }
        add(version)
        add(state.usage.bytes)
        add(state.usage.keys)
        add(state.usage.parts)
        add(state.newestCompacted.rawValue)
        add(state.lineage.compactedRevision)
        add(state.deletions)
        add(state.horizon.rawValue)
        add(state.folded)
        add(state.foldsCompacted.timestamp.rawValue)
        add(state.foldsCompacted.revision)
        add(state.accepted.floor.rawValue)
        let spans = state.lineage.spans.dropFirst(spanRows)
        add(spanRows)
        add(spans.count)
        for span in spans {
            add(span.firstRevision)
            add(span.epoch)
        }
        add(state.accepted.times.count)
        for (device, time) in state.accepted.times {
            add(device.rawValue)
            add(time.rawValue)
        }
        add(state.history.bytes)
        add(state.history.floor.revision)
        add(state.history.floor.milliseconds)
        add(state.history.oldest)
        add(UInt64(state.generation))
        return bytes
    }

    /// - Throws: ``StorageError/unreadable`` if it is not a value of this form.
    static func state(
        _ value: Data, newest: HybridTimestamp, revision: Int64
    ) throws(StorageError) -> (state: StoreState, spanRows: Int, recent: VersionPack) {
        var numbers = StoredNumbers(Array(value))
        guard try numbers.next() == version else { throw .unreadable }
        let usage = Usage(
            bytes: try numbers.count(), keys: try numbers.count(), parts: try numbers.count())
        let newestCompacted = try numbers.timestamp()
        let compactedRevision = try numbers.revision()
        let deletions = try numbers.count()
        let horizon = try numbers.timestamp()
        let folded = try numbers.count()
        let foldsCompacted = FoldHorizon(
            timestamp: try numbers.timestamp(), revision: try numbers.revision())
        let floor = try numbers.timestamp()
        let spanRows = try numbers.count()
        var spans: [Lineage.Span] = []
        for _ in 0..<(try numbers.count()) {
            spans.append(
                Lineage.Span(firstRevision: try numbers.revision(), epoch: try numbers.next()))
        }
        var times: [DeviceID: HybridTimestamp] = [:]
        for _ in 0..<(try numbers.count()) {
            times[DeviceID(rawValue: try numbers.next())] = try numbers.timestamp()
        }
        let history = HistoryState(
            bytes: try numbers.count(),
            floor: RecordVersion.Moment(
                revision: try numbers.revision(), milliseconds: try numbers.time()),
            oldest: try numbers.time())
        guard let generation = UInt32(exactly: try numbers.next()) else { throw .unreadable }
        let state = StoreState(
            lineage: Lineage(
                spans: spans, revision: revision, compactedRevision: compactedRevision),
            usage: usage, newest: newest, newestCompacted: newestCompacted, deletions: deletions,
            accepted: VersionVector(times: times, floor: floor), horizon: horizon, folded: folded,
            foldsCompacted: foldsCompacted, history: history, generation: generation)
        return (state, spanRows, try VersionPack(numbers.rest))
    }
}

extension [UInt8] {
    /// Appends what ``StoredNumbers`` reads.
    mutating func append(number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(rest))
    }

    mutating func append(_ moment: RecordVersion.Moment) {
        append(number: UInt64(bitPattern: moment.revision))
        append(number: UInt64(bitPattern: moment.milliseconds))
    }

    mutating func append(_ data: Data) {
        append(number: UInt64(data.count))
        append(contentsOf: data)
    }
}

/// A reader of stored numbers, seven bits a byte. Every call throws ``StorageError/unreadable`` at the
/// end.
struct StoredNumbers {
    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { index == bytes.count }
    /// The bytes that have not been read yet.
    var rest: ArraySlice<UInt8> { bytes[index...] }

    mutating func next() throws(StorageError) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: 0, to: 70, by: 7) {
            guard index < bytes.count else { throw .unreadable }
            let byte = bytes[index]
            index += 1
            number |= UInt64(byte & 0x7F) << UInt64(shift)
            if byte & 0x80 == 0 { return number }
        }
        throw .unreadable
    }

    /// A number of things, small enough to add to.
    mutating func count() throws(StorageError) -> Int {
        let number = try next()
        guard number <= 1 << 61 else { throw .unreadable }
        return Int(number)
    }

    mutating func revision() throws(StorageError) -> Int64 { Int64(try count()) }

    /// In milliseconds since 1970.
    mutating func time() throws(StorageError) -> Int64 { Int64(try count()) }

    mutating func timestamp() throws(StorageError) -> HybridTimestamp {
        HybridTimestamp(rawValue: try next())
    }

    /// As a row's: the time may be before 1970.
    mutating func moment() throws(StorageError) -> RecordVersion.Moment {
        let revision = try revision()
        let milliseconds = Int64(bitPattern: try next())
        guard milliseconds.magnitude <= 1 << 61 else { throw .unreadable }
        return RecordVersion.Moment(revision: revision, milliseconds: milliseconds)
    }

    /// The places of bytes after their number.
    mutating func range() throws(StorageError) -> Range<Int> {
        let count = try count()
        guard count <= bytes.count - index else { throw .unreadable }
        defer { index += count }
        return index..<(index + count)
    }
}
