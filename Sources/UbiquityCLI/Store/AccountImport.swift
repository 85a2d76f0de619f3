// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore
import UbiquityWire

/// The file of an account, read in pieces, once to check it and once to import it.
struct AccountImport {
    private enum Source {
        case bytes([UInt8])
        case handle(FileHandle, start: UInt64)
    }

    private let source: Source
    /// The size of the file.
    let bytes: Int
    private let name: String

    private static let pieceBytes = 1 << 20

    /// Nil if they do not begin like the file of an account.
    init?(_ data: Data, name: String) {
        guard AccountFileReader.isAccount(data) else { return nil }
        (source, bytes, self.name) = (.bytes([UInt8](data)), data.count, name)
    }

    /// The rest of the standard input, if some of that was read before.
    ///
    /// Fails if the file does not begin like that of an account, or cannot be read twice, like a
    /// pipe.
    /// - Throws: ``Failure``.
    init?(_ path: String) throws(Failure) {
        let handle = try InputFile.open(path)
        guard let start = try? handle.offset(), let end = try? handle.seekToEnd(), end > start,
            let count = Int(exactly: end - start)
        else { return nil }
        try? handle.seek(toOffset: start)
        let beginning = try? handle.read(upToCount: AccountFileReader.beginningBytes)
        try? handle.seek(toOffset: start)
        guard AccountFileReader.isAccount(beginning ?? Data()) else { return nil }
        (source, bytes, name) = (.handle(handle, start: start), count, InputFile.name(path))
    }

    /// Reads the file to its end, with one store at a time in memory.
    /// - Parameters:
    ///   - only: The only store to take; nil for all.
    ///   - take: Gets each store, and the number of bytes read so far.
    /// - Returns: The account's name.
    /// - Throws: ``Failure``, and what `take` throws.
    func read(
        only: String?,
        _ take: (StoreIdentifier, [PropertyListFile.Entry], Int) async throws -> Void
    ) async throws -> String {
        var reader = AccountFileReader()
        var isFound = only == nil
        try rewind()
        while let piece = try piece(after: reader.bytes), !piece.isEmpty {
            for store in try checked({ () throws(AccountFileError) in try reader.take(piece) })
            where only == nil || store.identifier.string == only {
                isFound = true
                let entries = store.entries.sorted { $0.key < $1.key }.map {
                    PropertyListFile.Entry(key: $0.key.string, value: .success($0.value))
                }
                try await take(store.identifier, entries, reader.bytes)
            }
        }
        try checked { () throws(AccountFileError) in try reader.finish() }
        guard isFound else { throw Failure(.badInput, "\(name) has no store \(only ?? "")") }
        return reader.accountName
    }

    private func rewind() throws(Failure) {
        guard case .handle(let handle, let start) = source else { return }
        do { try handle.seek(toOffset: start) } catch { throw unreadable(error) }
    }

    private func piece(after count: Int) throws(Failure) -> [UInt8]? {
        switch source {
        case .bytes(let bytes): return Array(bytes.dropFirst(count).prefix(Self.pieceBytes))
        case .handle(let handle, _):
            do { return try handle.read(upToCount: Self.pieceBytes).map { [UInt8]($0) } } catch {
                throw unreadable(error)
            }
        }
    }

    private func unreadable(_ error: any Error) -> Failure {
        Failure(.noInput, (error as? CocoaError)?.sentence(about: name) ?? "\(error)")
    }

    private func checked<T>(_ body: () throws(AccountFileError) -> T) throws(Failure) -> T {
        do { return try body() } catch {
            throw Failure(.badInput, "\(name) cannot be imported: \(error)")
        }
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
