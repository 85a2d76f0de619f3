// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The files in a tar archive, by name.
///
/// Accepts archives of this program, and those that GNU and BSD tar make of the same files. Refuses
/// anything that an export never contains and that could harm someone who unpacks it: links and
/// devices, names that lead out of a folder, duplicate names, sizes that reach beyond the end, and
/// names or sizes in pax or GNU extensions, which would override the header's.
struct TarReader {
    /// The location of each file's content in the bytes.
    private(set) var files: [String: Range<Int>] = [:]
    private let count: Int
    private let read: Archive.Read

    static let membersMax = 4_096
    /// The maximum size of a member's pax header.
    private static let extensionBytesMax = 64 << 10

    /// - Throws: ``ArchiveError``.
    init(count: Int, read: @escaping Archive.Read) throws(ArchiveError) {
        self.count = count
        self.read = read
        guard TarHeader.isTar(try read(0..<min(count, TarHeader.blockBytes))) else {
            throw .notTar
        }
        var offset = 0
        var members = 0
        while let header = try header(at: offset) {
            members += 1
            guard members <= Self.membersMax else { throw .tooManyMembers(max: Self.membersMax) }
            let start = offset + TarHeader.blockBytes
            guard header.size <= count - start else { throw .incomplete }
            try take(header, start..<(start + header.size))
            offset = start + TarHeader.paddedBytes(header.size)
        }
    }

    /// Nil at the end, which is a block of zeros.
    private func header(at offset: Int) throws(ArchiveError) -> TarHeader? {
        guard offset <= count - TarHeader.blockBytes else { throw .incomplete }
        let block = try read(offset..<(offset + TarHeader.blockBytes))
        if block.allSatisfy({ $0 == 0 }) { return nil }
        return try TarHeader(block[...], offset: offset)
    }

    private mutating func take(
        _ header: TarHeader, _ content: Range<Int>
    ) throws(ArchiveError) {
        switch TarHeader.Kind(rawValue: header.kind) {
        case .file, .oldFile:
            let name = try TarName.checked(header.name)
            guard files.updateValue(content, forKey: name) == nil else { throw .twice(name) }
        case .folder: _ = try TarName.checked(header.name)
        case .extended, .extendedGlobal: try checkExtension(content)
        case nil: throw .notFile(TarName.shown(header.name))
        }
    }

    /// Allows times and owners, but nothing that changes the file's name or size.
    private func checkExtension(_ content: Range<Int>) throws(ArchiveError) {
        guard content.count <= Self.extensionBytesMax else {
            throw .notFile("an extended header of more than \(Self.extensionBytesMax >> 10) kB")
        }
        for record in try read(content).split(separator: UInt8(ascii: "\n")) {
            let field = record.drop { $0 != UInt8(ascii: " ") }.dropFirst()
            let keyword = String(
                decoding: field.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
            guard !["path", "size", "linkpath"].contains(keyword),
                !keyword.utf8.starts(with: "GNU.sparse".utf8)
            else { throw .notFile("a name or size in an extended header") }
        }
    }
}

/// Checks the names of files in an archive.
enum TarName {
    private static let bytesMax = 255

    /// Returns the name without a leading "./" and a trailing slash.
    /// - Throws: ``ArchiveError/nameUnsafe(_:)`` for a name that is not below the folder of
    ///   unpacking, on any system.
    static func checked(_ bytes: [UInt8]) throws(ArchiveError) -> String {
        var name = bytes[...]
        while name.starts(with: Array("./".utf8)) { name = name.dropFirst(2) }
        if name.last == UInt8(ascii: "/") { name = name.dropLast() }
        guard let text = String(validating: name, as: UTF8.self), isSafe(text) else {
            throw .nameUnsafe(shown(bytes))
        }
        return text
    }

    private static func isSafe(_ name: String) -> Bool {
        // The rest of "./": the folder itself.
        if name.isEmpty || name == "." { return true }
        let hasOddBytes = name.utf8.contains { $0 < 0x20 || $0 == 0x7F || $0 == 0x5C || $0 == 0x3A }
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        return name.utf8.count <= bytesMax && !hasOddBytes
            && parts.allSatisfy { !$0.isEmpty && $0 != "." && $0 != ".." }
    }

    /// Makes the name safe for display.
    static func shown(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.prefix(bytesMax), as: UTF8.self).visible()
    }
}
