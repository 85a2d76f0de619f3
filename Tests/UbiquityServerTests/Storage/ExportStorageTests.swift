// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// What an export reads of each backend while devices write.
@Suite struct ExportStorageTests {
    private let folder: TemporaryFolder
    private let memory = ByteBudget(max: 64 << 20)

    init() throws { folder = try TemporaryFolder() }

    private static let large = String(repeating: "x", count: 60_000)

    private func fill(_ storage: any ServerStorage, rounds: Int = 1) throws {
        for round in 0..<rounds {
            for number in 0..<16 {
                let value = PropertyListValue.string(Self.large + "\(round)")
                let key = "k\(10 + number)"
                try storage.commit(Sample.push(Sample.record(key, value, at: 500 + Int64(round))))
            }
        }
    }

    /// Exports the sample's account.
    /// - Parameter change: Called after each slice, with its number.
    private func export(
        _ storage: any ServerStorage, withHistory: Bool = false,
        _ change: (Int) throws -> Void = { _ in }
    ) throws -> (text: String, slices: [Int], stores: [AccountFileReader.Store]) {
        let permit = try AccountShares(of: memory, placesMax: 1).take(Sample.account.id)
        let history = withHistory ? HistoryRule(HistoryLimits(), now: 2_000) : nil
        var export = AccountExport(
            of: Sample.account, storage: storage, history: history, now: 2_000, permit: permit)
        var (file, slices) = ([UInt8](), [Int]())
        while let slice = try export.next() {
            #expect(memory.bytes == 0)
            file += slice
            slices.append(slice.count)
            try change(slices.count)
        }
        var reader = AccountFileReader()
        let stores = try reader.take(file)
        try reader.finish()
        return (String(decoding: file, as: UTF8.self), slices, stores)
    }

    @Test(arguments: Backend.allCases, [false, true])
    func `an export holds one slice at a time, of a store and of its history`(
        backend: Backend, withHistory: Bool
    ) throws {
        let storage = try backend.open(in: folder)
        try fill(storage, rounds: 2)
        let (text, slices, stores) = try export(storage, withHistory: withHistory)
        // Two values of 60,000 bytes fit into a slice.
        #expect(slices.count == (withHistory ? 26 : 10))
        #expect(slices.allSatisfy { $0 < AnswerPieces.sliceBytes + 8_192 })
        #expect(stores.map(\.entries.count) == [16])
        #expect(text.matches(of: /"replaced":/).count == (withHistory ? 16 : 0))
        #expect(text.matches(of: /"current":true/).count == (withHistory ? 16 : 0))
    }

    @Test(arguments: Backend.allCases)
    func `an export has no part of a transaction that is committed meanwhile`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        try fill(storage)
        let (_, slices, stores) = try export(storage) { slice in
            guard (2..<9).contains(slice) else { return }
            try storage.commit(
                Sample.push(
                    Sample.record("a", .integer(Int64(slice)), at: 600 + Int64(slice)),
                    Sample.record(
                        "k15", slice == 8 ? nil : .integer(Int64(slice)), at: 600 + Int64(slice)),
                    Sample.record("z", .integer(Int64(slice)), at: 600 + Int64(slice))))
        }
        let entries = try #require(stores.first?.entries)
        #expect(entries["a"] == .integer(8) && entries["z"] == .integer(8))
        #expect(entries["k15"] == nil && entries.count == 17)
        #expect(slices.count == 11)
    }

    @Test(arguments: Backend.allCases)
    func `an export has a count as its parts make it together, though one changes meanwhile`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        func count(_ part: String, _ total: Int64, at time: Int64) throws {
            let key = try Key("again").part(try #require(PartID(part)))
            let content = Content.value(.array([.integer(total), .integer(total)]))
            let stamp = Stamp(HybridTimestamp(milliseconds: time), Sample.device)
            try storage.commit(
                Sample.push(Record(key: key, content: content, stamp: stamp)))
        }
        try count("cone", 3, at: 400)
        try count("ctwo", 4, at: 400)
        try fill(storage)
        let (_, _, stores) = try export(storage) { slice in
            if slice == 5 { try count("ctwo", 9, at: 600) }
        }
        #expect(stores.first?.entries["again"] == .integer(12))
    }

    @Test(arguments: Backend.allCases)
    func `an export ends early if its account is erased meanwhile`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try fill(storage)
        #expect(throws: StorageError.noSuchAccount) {
            _ = try export(storage) { slice in
                guard slice == 3 else { return }
                _ = try storage.erase(Sample.account.id, now: 1_000, by: .operatorLocally)
            }
        }
    }
}
