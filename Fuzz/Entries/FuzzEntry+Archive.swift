// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityArchive
internal import UbiquityCore

extension FuzzEntry {
    /// An archive of an account, to be imported.
    static var archive: FuzzEntry {
        FuzzEntry("archive", stack: .system, bytesMax: 16_384) {
            Samples.archives()
        } check: { bytes in
            try checkPieces(bytes)
            guard let archive = try? Archive(bytes, readText: readText) else { return }
            var writer = ArchiveWriter(
                made: archive.manifest.made, accountID: archive.manifest.accountID,
                accountName: archive.manifest.accountName, devices: archive.manifest.devices)
            var again: [UInt8] = []
            var stores: [StoreIdentifier: [Key: PropertyListValue]] = [:]
            for store in archive.manifest.stores {
                let entries = try? archive.entries(of: store, readText: readText)
                guard let values = try values(entries ?? [:]) else { return }
                stores[store.identifier] = values
                again += writer.store(store.identifier, values)
            }
            try check(again + writer.end(), has: stores)
        }
    }

    /// Nil if one of them is not small.
    private static func values(
        _ entries: [ExactString: PropertyListValue]
    ) throws -> [Key: PropertyListValue]? {
        var values: [Key: PropertyListValue] = [:]
        for (key, value) in entries {
            guard Laws.isSmall(value) else { return nil }
            try Laws.check(value)
            if let key = try? Key(key.string) { values[key] = value }
        }
        return values
    }

    /// Checks that what was read can be written, and read again as the same.
    private static func check(
        _ bytes: [UInt8], has stores: [StoreIdentifier: [Key: PropertyListValue]]
    ) throws {
        try must(checkPieces(bytes) == true, "an archive is not complete")
        let archive = try Archive(bytes, readText: readText)
        try must(archive.manifest.stores.count == stores.count, "an archive lost a store")
        for store in archive.manifest.stores {
            let entries = try archive.entries(of: store, readText: readText)
            let values = stores[store.identifier] ?? [:]
            let expected = Dictionary(values.map { ($0.key.name, $0.value) }) { first, _ in first }
            try must(entries == expected, "a store changed in its archive")
        }
    }

    /// Checks the bytes in one piece and in small ones, with equal results.
    /// - Returns: Whether there are digests; nil if the archive is not complete.
    @discardableResult
    private static func checkPieces(_ bytes: [UInt8]) throws -> Bool? {
        func result(_ size: Int) -> Bool? {
            var check = ArchiveCheck()
            do throws(ArchiveError) {
                for start in stride(from: 0, to: bytes.count, by: size) {
                    try check.take(Array(bytes[start..<min(start + size, bytes.count)]))
                }
                return try check.finish()
            } catch { return nil }
        }
        let whole = result(max(1, bytes.count))
        try must(whole == result(77), "an archive is another in pieces")
        return whole
    }

    private static func readText(_ bytes: [UInt8]) throws -> PropertyListValue {
        try PropertyList.decode(bytes)
    }
}

extension Samples {
    static func archives() -> [String: [UInt8]] {
        var writer = archiveWriter
        var archives = ["empty": writer.end()]
        for (name, value) in values {
            guard let identifier = try? StoreIdentifier("TEAM.notes") else { continue }
            var writer = archiveWriter
            archives[name] =
                writer.store(identifier, [key: value, otherKey: .integer(1)])
                + writer.end()
        }
        return archives
    }

    private static var archiveWriter: ArchiveWriter {
        ArchiveWriter(
            made: milliseconds, accountID: "0123456789abcdef", accountName: "ada",
            devices: [
                ArchiveManifest.Device(
                    id: "\(device)", name: "laptop", createdMilliseconds: milliseconds,
                    seenMilliseconds: milliseconds)
            ])
    }
}
