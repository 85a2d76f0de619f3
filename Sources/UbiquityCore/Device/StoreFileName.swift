// SPDX-License-Identifier: Apache-2.0

/// What the file of a store is called.
///
/// It is called by the store's identifier, but where a disk cannot have that: names end at 255 bytes, with
/// what is appended, and some disks take two names for one that differ only in the case of letters. The
/// file is called by the identifier's beginning and a number that stands for all of it then. A file that
/// has been made keeps its name.
package enum StoreFileName {
    package static let suffix = ".sqlite"
    /// Room for the suffix and for what is appended to that, "-journal" being the longest.
    static let identifierBytesMax = 240
    /// No identifier has it.
    private static let separator: Character = "~"
    private static let beginningBytes = 200

    /// - Parameter names: Those of the files that are there.
    package static func name(of identifier: String, among names: [String]) -> String {
        let plain = identifier + suffix
        let short = short(identifier) + suffix
        guard identifier.utf8.count <= identifierBytesMax else { return short }
        if names.contains(plain) { return plain }
        let isTaken = names.contains { $0 == short || $0.lowercased() == plain.lowercased() }
        return isTaken ? short : plain
    }

    /// The identifier of the store that a file is of, or its beginning with "…"; nil: it is no store's.
    package static func identifier(of name: String) -> String? {
        guard name.hasSuffix(suffix) else { return nil }
        let name = name.dropLast(suffix.count)
        guard let end = name.firstIndex(of: separator) else { return String(name) }
        let beginning = name[..<end]
        return String(beginning) + (beginning.utf8.count < beginningBytes ? "" : "…")
    }

    private static func short(_ identifier: String) -> String {
        let number = String(hash(identifier), radix: 16)
        return String(decoding: identifier.utf8.prefix(beginningBytes), as: UTF8.self)
            + String(separator) + String(repeating: "0", count: 16 - number.count) + number
    }

    /// FNV-1a. Not to be changed: files are found by it.
    private static func hash(_ text: String) -> UInt64 {
        text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    }
}
