// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityArchive
import UbiquityCore

/// The stores of an archive, and the changes that each would make on this device.
///
/// All stores are checked first, then each is written as one transaction, so problems are known
/// before anything is written.
struct ArchiveImport {
    struct Store {
        var identifier: String
        var entries: [PropertyListFile.Entry]
    }

    let accountName: String
    let stores: [Store]

    /// - Parameter only: The only store to import; nil for all.
    /// - Throws: ``Failure``.
    init(_ data: Data, name: String, only: String?) throws {
        do throws(ArchiveError) {
            let archive = try Archive([UInt8](data), readText: Self.readText)
            accountName = archive.manifest.accountName
            var stores: [Store] = []
            for store in archive.manifest.stores {
                guard only == nil || store.identifier.string == only else { continue }
                let entries = try archive.entries(of: store, readText: Self.readText)
                stores.append(
                    Store(
                        identifier: store.identifier.string,
                        entries: entries.sorted { $0.key < $1.key }.map {
                            PropertyListFile.Entry(key: $0.key.string, value: .success($0.value))
                        }))
            }
            self.stores = stores
        } catch { throw Failure(.badInput, "\(name) cannot be imported: \(error)") }
        guard only == nil || !stores.isEmpty else {
            throw Failure(.badInput, "\(name) has no store \(only ?? "")")
        }
    }

    private static func readText(_ bytes: [UInt8]) throws -> PropertyListValue {
        try PropertyListValue(PropertyListFile.root(of: Data(bytes)))
    }
}

/// The result of importing one store of an archive.
struct ImportedStore {
    var identifier: String
    var imported: Int
    /// The number of keys that already had their value.
    var unchanged: Int
    var skipped: [ImportPlan.Rejected]
    /// Nil if nothing had to be written.
    var outcome: WriteOutcome?

    var line: String {
        let rest = unchanged > 0 ? ", \(Phrase.grouped(unchanged)) had their value already" : ""
        return "  \(identifier): \(Phrase.keys(imported))\(rest)"
    }

    var json: JSON {
        .object(
            [
                ("store", .string(identifier)), ("imported", .integer(imported)),
                ("unchanged", .integer(unchanged)), ("skipped", .array(skipped.map(\.json))),
            ] + (outcome ?? WriteOutcome(unsent: nil)).fields)
    }
}
