// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// snippet.export
func exportStore(to file: URL) throws {
    let values = NSUbiquitousKeyValueStore.default.dictionaryRepresentation
    let data = try PropertyListSerialization.data(
        fromPropertyList: values, format: .xml, options: 0)
    try data.write(to: file, options: .atomic)
}
// snippet.end

// snippet.import
func importStore(
    from file: URL, into store: UbiquitousKeyValueStore
) async throws {
    let list = try PropertyListSerialization.propertyList(
        from: try Data(contentsOf: file), options: [], format: nil)
    // After this, a key without a value is one that the account does not have.
    try await store.initialSync()
    try store.performBatch { batch in
        for (key, value) in list as? [String: Any] ?? [:] where batch.object(forKey: key) == nil {
            try batch.set(value, forKey: key)
        }
    }
}
// snippet.end

// snippet.hide
if CommandLine.arguments.count == 2 {
    let file = URL(fileURLWithPath: CommandLine.arguments[1])
    try exportStore(to: file)
    try await importStore(from: file, into: .default)
}
