// SPDX-License-Identifier: Apache-2.0

/// The file name of a store.
///
/// Usually the store's identifier. Some disks cannot hold that: a name has at most 255 bytes,
/// suffixes included, and some disks ignore case. The file then gets the beginning of the
/// identifier and a hash of all of it. An existing file keeps its name.
package enum StoreFileName {
    package static let suffix = ".sqlite"
    /// Leaves room for the suffix and for what SQLite appends to it, at most "-journal".
    static let identifierBytesMax = 240
    /// Does not occur in identifiers.
    private static let separator: Character = "~"
    private static let beginningBytes = 200

    /// - Parameter names: The names of the existing files.
    package static func name(of identifier: String, among names: [String]) -> String {
        let plain = identifier + suffix
        let short = short(identifier) + suffix
        guard identifier.utf8.count <= identifierBytesMax else { return short }
        if names.contains(plain) { return plain }
        let isTaken = names.contains { $0 == short || $0.lowercased() == plain.lowercased() }
        return isTaken ? short : plain
    }

    /// The identifier of a file's store, or its beginning followed by "…"; nil if it is not a
    /// store's file.
    package static func identifier(of name: String) -> String? {
        guard name.hasSuffix(suffix) else { return nil }
        let name = name.dropLast(suffix.count)
        guard let end = name.firstIndex(of: separator) else { return String(name) }
        let beginning = name[..<end]
        return String(beginning) + (beginning.utf8.count < beginningBytes ? "" : "…")
    }

    private static func short(_ identifier: String) -> String {
        String(decoding: identifier.utf8.prefix(beginningBytes), as: UTF8.self)
            + String(separator) + StableHash(identifier).value.hexadecimal
    }
}
