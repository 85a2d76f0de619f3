// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityWire

extension FuzzEntry {
    /// The file of an account, to be imported.
    static var accountFile: FuzzEntry {
        FuzzEntry("account-file", stack: .system, bytesMax: 16_384) {
            Samples.accountFiles()
        } check: { bytes in
            guard let stores = try readAlike(bytes) else { return }
            var writer = AccountFileWriter()
            var again = writer.begin(WireAccount(), madeMilliseconds: Samples.milliseconds)
            for store in stores {
                again += writer.beginStore(store.identifier)
                for (key, value) in store.entries {
                    guard Laws.isSmall(value) else { return }
                    try Laws.check(value)
                    if let key = try? Key(key.string) { again += writer.record(key, value) }
                }
                again += writer.endStore()
            }
            let found = try readAlike(again + writer.end())
            try must(found?.count == stores.count, "an account's file lost a store")
            for (store, before) in zip(found ?? [], stores) {
                let entries = before.entries.filter { (try? Key($0.key.string)) != nil }
                try must(store.entries == entries, "a store changed in an account's file")
            }
        }
    }

    /// Reads the bytes in one piece, in small ones, and without values, with equal results.
    /// - Returns: Nil if they are not a whole file.
    private static func readAlike(_ bytes: [UInt8]) throws -> [AccountFileReader.Store]? {
        let whole = read(bytes, in: max(1, bytes.count))
        let parts = read(bytes, in: 77)
        try must(
            whole?.map(\.identifier) == parts?.map(\.identifier)
                && whole?.map(\.entries) == parts?.map(\.entries),
            "an account's file is another in pieces")
        try must(
            whole == nil || read(bytes, in: 77, keepsValues: false)?.count == whole?.count,
            "an account's file is whole only with its values")
        return whole
    }

    private static func read(
        _ bytes: [UInt8], in size: Int, keepsValues: Bool = true
    ) -> [AccountFileReader.Store]? {
        var reader = AccountFileReader(keepsValues: keepsValues)
        var stores: [AccountFileReader.Store] = []
        do throws(AccountFileError) {
            for start in stride(from: 0, to: bytes.count, by: size) {
                stores += try reader.take(bytes[start..<min(start + size, bytes.count)])
            }
            try reader.finish()
            return stores
        } catch { return nil }
    }
}

extension Samples {
    static func accountFiles() -> [String: [UInt8]] {
        var files = ["empty": accountFile([:])]
        for (name, value) in values {
            files[name] = accountFile([key: value, otherKey: .integer(1)])
        }
        return files
    }

    private static func accountFile(_ values: [Key: PropertyListValue]) -> [UInt8] {
        let account = WireAccount.with {
            $0.id = "0123456789abcdef"
            $0.name = "ada"
            $0.devices = [.with { $0.name = "laptop" }]
        }
        var writer = AccountFileWriter()
        var bytes = writer.begin(account, madeMilliseconds: milliseconds)
        guard let notes = try? StoreIdentifier("TEAM.notes"), !values.isEmpty else {
            return bytes + writer.end()
        }
        bytes += writer.beginStore(notes)
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            bytes += writer.record(key, value)
        }
        bytes += writer.beginHistory()
        for value in values.values {
            bytes += writer.version(
                RecordVersion(
                    record: record(value),
                    came: RecordVersion.Moment(revision: 1, milliseconds: milliseconds),
                    outcome: .current))
        }
        return bytes + writer.endStore() + writer.end()
    }
}
