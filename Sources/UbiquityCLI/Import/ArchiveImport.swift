// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityArchive
import UbiquityCore

/// An archive file that is read in parts.
struct ArchiveFile {
    let count: Int
    let read: Archive.Read

    init(_ bytes: [UInt8]) {
        count = bytes.count
        read = Archive.read(from: bytes)
    }

    /// The rest of the standard input, if some of that was read before.
    ///
    /// Fails if the file does not begin like an archive, or cannot be read in parts, like a pipe.
    /// - Throws: ``Failure``.
    init?(_ path: String) throws(Failure) {
        let handle = try InputFile.open(path)
        guard let start = try? handle.offset(), let end = try? handle.seekToEnd(), end > start,
            let count = Int(exactly: end - start)
        else { return nil }
        self.count = count
        read = { range throws(ArchiveError) in
            do {
                try handle.seek(toOffset: start + UInt64(range.lowerBound))
                let part = try handle.read(upToCount: range.count) ?? Data()
                guard part.count == range.count else { throw ArchiveError.incomplete }
                return [UInt8](part)
            } catch { throw error as? ArchiveError ?? .unreadable("\(error)") }
        }
        let beginning = try? read(0..<min(count, Archive.beginningBytes))
        try? handle.seek(toOffset: start)
        guard Archive.isArchive(beginning ?? []) else { return nil }
    }
}

/// The stores of an archive, read one at a time.
///
/// All stores are checked first, then each is written as one transaction, so problems are known
/// before anything is written.
struct ArchiveImport {
    let stores: [ArchiveManifest.Store]
    private let archive: Archive
    private let name: String

    /// - Parameter only: The only store to import; nil for all.
    /// - Throws: ``Failure``.
    init(_ file: ArchiveFile, name: String, only: String?) throws(Failure) {
        self.name = name
        do throws(ArchiveError) {
            archive = try Archive(count: file.count, read: file.read, readText: Self.readText)
        } catch { throw Self.failure(error, name) }
        stores = archive.manifest.stores.filter { only == nil || $0.identifier.string == only }
        guard only == nil || !stores.isEmpty else {
            throw Failure(.badInput, "\(name) has no store \(only ?? "")")
        }
    }

    /// The number of keys in the stores, as the manifest says.
    var keys: Int { stores.reduce(0) { $0 &+ $1.keys } }
    var accountName: String { archive.manifest.accountName }
    var hasDigests: Bool { archive.hasDigests }

    /// - Throws: ``Failure``.
    func entries(of store: ArchiveManifest.Store) throws(Failure) -> [PropertyListFile.Entry] {
        do throws(ArchiveError) {
            return try archive.entries(of: store, readText: Self.readText)
                .sorted { $0.key < $1.key }
                .map { PropertyListFile.Entry(key: $0.key.string, value: .success($0.value)) }
        } catch { throw Self.failure(error, name) }
    }

    private static func failure(_ error: ArchiveError, _ name: String) -> Failure {
        Failure(.badInput, "\(name) cannot be imported: \(error)")
    }

    private static func readText(_ bytes: [UInt8]) throws -> PropertyListValue {
        try PropertyList.decode(bytes)
    }
}

/// The result of importing into one store.
struct ImportedStore {
    var identifier: String
    /// The number of keys that got another value.
    var imported: Int
    /// The number of keys that already had their value.
    var unchanged: Int
    var skipped: [ImportPlan.Rejected]
    var changes: [ValueChange]
    var outcome: WriteOutcome

    /// For people.
    var counts: String {
        let rest = unchanged > 0 ? ", \(Phrase.grouped(unchanged)) already had their value" : ""
        return "\(Phrase.keys(imported))\(rest)"
    }

    var fields: [(String, JSON)] {
        [
            ("store", .string(identifier)), ("imported", .integer(imported)),
            ("unchanged", .integer(unchanged)), ("skipped", .array(skipped.map(\.json))),
        ] + outcome.fields
    }
}
