// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// An archive of an account, read and checked. Keeps one of its files in memory at a time.
package struct Archive: Sendable {
    package let manifest: ArchiveManifest
    private let read: Read
    private let files: [String: Range<Int>]
    private let digests: ArchiveDigests?

    static let storesFolder = "stores/"
    static let historyFolder = "history/"
    static let suffix = ".plist"
    private static let manifestBytesMax = 4 << 20
    /// The maximum size of a store's file.
    package static let fileBytesMax = 64 << 20
    package static let bytesMax = 4 << 30

    /// Reads a part of the archive.
    package typealias Read = @Sendable (Range<Int>) throws(ArchiveError) -> [UInt8]

    /// Reads a property list in a format that ``BinaryPropertyList`` does not know. Throws an error
    /// whose text is for people.
    package typealias ReadText = (_ bytes: [UInt8]) throws -> PropertyListValue

    /// The size of the beginning that ``isArchive(_:)`` needs.
    package static let beginningBytes = TarHeader.blockBytes

    /// Whether bytes are an archive, judged by their beginning.
    package static func isArchive(_ bytes: some RandomAccessCollection<UInt8>) -> Bool {
        TarHeader.isTar(bytes)
    }

    /// Files other than the manifest and those of stores are ignored: a system may have added them,
    /// and histories are for people.
    /// - Parameter count: The size of the whole archive in bytes.
    /// - Throws: ``ArchiveError``.
    package init(
        count: Int, read: @escaping Read, readText: ReadText
    ) throws(ArchiveError) {
        guard count <= Self.bytesMax else { throw .tooLarge(max: Self.bytesMax) }
        self.read = read
        files = try TarReader(count: count, read: read).files
        digests = try Self.digests(files[ArchiveDigests.fileName], read)
        guard let range = files[ArchiveManifest.fileName] else { throw .manifestMissing }
        guard range.count <= Self.manifestBytesMax else {
            throw .manifestInvalid("it has more than \(Self.manifestBytesMax >> 20) MB")
        }
        let content = try read(range)
        let root: PropertyListValue
        do { root = try Self.propertyList(content, readText) } catch {
            throw .manifestInvalid("\(error)")
        }
        manifest = try ArchiveManifest(root)
        try checkFiles()
        try checkDigest(of: ArchiveManifest.fileName, content)
    }

    package init(_ bytes: [UInt8], readText: ReadText) throws(ArchiveError) {
        try self.init(count: bytes.count, read: Self.read(from: bytes), readText: readText)
    }

    package static func read(from bytes: [UInt8]) -> Read { { Array(bytes[$0]) } }

    /// Whether the content can be checked against the export. Archives of version 0.1 have no
    /// digests.
    package var hasDigests: Bool { digests != nil }

    private static func digests(
        _ range: Range<Int>?, _ read: Read
    ) throws(ArchiveError) -> ArchiveDigests? {
        guard let range else { return nil }
        guard range.count <= ArchiveDigests.bytesMax,
            let digests = ArchiveDigests(content: try read(range))
        else { throw .digestsInvalid }
        return digests
    }

    private func checkDigest(of name: String, _ content: [UInt8]) throws(ArchiveError) {
        guard digests?.match(name, content) ?? true else { throw .fileChanged(name) }
    }

    private func checkFiles() throws(ArchiveError) {
        var listed: Set<String> = []
        var identifiers: Set<StoreIdentifier> = []
        for store in manifest.stores {
            guard files[store.file] != nil else { throw .fileMissing(store.file) }
            guard listed.insert(store.file).inserted,
                identifiers.insert(store.identifier).inserted
            else { throw .manifestInvalid("it lists \(store.file) twice") }
        }
        let unlisted = files.keys.filter { Self.isStoreFile($0) && !listed.contains($0) }.min()
        if let unlisted { throw .fileUnlisted(unlisted) }
    }

    /// Excludes files that macOS adds beside others.
    private static func isStoreFile(_ name: String) -> Bool {
        name.hasPrefix(storesFolder) && name.hasSuffix(suffix)
            && !name.hasPrefix(storesFolder + "._")
    }

    /// The content of a store in the manifest: its keys as written, and their values.
    /// - Throws: ``ArchiveError``.
    package func entries(
        of store: ArchiveManifest.Store, readText: ReadText
    ) throws(ArchiveError) -> [ExactString: PropertyListValue] {
        guard let range = files[store.file] else { throw .fileMissing(store.file) }
        guard range.count <= Self.fileBytesMax else {
            throw .fileDamaged(
                store.file, reason: "it has more than \(Self.fileBytesMax >> 20) MB")
        }
        let content = try read(range)
        try checkDigest(of: store.file, content)
        let root: PropertyListValue
        do { root = try Self.propertyList(content, readText) } catch {
            throw .fileDamaged(store.file, reason: "\(error)")
        }
        guard case .dictionary(let entries) = root else {
            throw .fileDamaged(store.file, reason: "its root is not a dictionary")
        }
        guard entries.count == store.keys else {
            throw .fileDamaged(
                store.file,
                reason: "it has \(entries.count) keys, and the manifest says \(store.keys)")
        }
        return entries
    }

    private static func propertyList(
        _ bytes: [UInt8], _ readText: ReadText
    ) throws -> PropertyListValue {
        BinaryPropertyList.isBinary(bytes)
            ? try BinaryPropertyList.decode(bytes) : try readText(bytes)
    }
}

/// The reason bytes are not an archive of an account, or cannot be used, as a sentence for people.
package enum ArchiveError: Error, Hashable, Sendable {
    /// Not a tar archive at all.
    case notTar
    /// It is incomplete.
    case incomplete
    case tooLarge(max: Int)
    /// A header with invalid numbers or a wrong checksum.
    case headerDamaged(offset: Int)
    /// A name that could lead out of a folder, or an empty name.
    case nameUnsafe(String)
    case twice(String)
    /// A link, a device, or anything else that is neither a file nor a folder.
    case notFile(String)
    case tooManyMembers(max: Int)
    case manifestMissing
    case manifestInvalid(String)
    /// The manifest's format is newer.
    case newer(format: Int64, known: Int64)
    case fileMissing(String)
    /// A store's file that the manifest does not list.
    case fileUnlisted(String)
    case fileDamaged(String, reason: String)
    case digestsInvalid
    /// The file does not match the list of digests.
    case fileChanged(String)
    case unreadable(String)
}

extension ArchiveError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notTar: "it is not a tar archive"
        case .incomplete: "it is not complete; export it again"
        case .tooLarge(let max): "it has more than \(max >> 20) MB"
        case .headerDamaged(let offset): "it is damaged at byte \(offset); export it again"
        case .nameUnsafe(let name):
            "it has a file named \"\(name)\", which could lead elsewhere; an export has no such "
                + "file"
        case .twice(let name): "it has the file \(name) twice"
        case .notFile(let name):
            "\"\(name)\" in it is neither a file nor a folder; an export has no links"
        case .tooManyMembers(let max): "it has more than \(max) files"
        case .manifestMissing: "it has no file \(ArchiveManifest.fileName); it is not an export"
        case .manifestInvalid(let reason):
            "its \(ArchiveManifest.fileName) cannot be used: \(reason)"
        case .newer(let format, let known):
            "its format is \(format), and this program knows formats up to \(known); use a newer "
                + "version of the program"
        case .fileMissing(let name): "its manifest lists \(name), which is not in it"
        case .fileUnlisted(let name): "its manifest does not list \(name)"
        case .digestsInvalid: "its \(ArchiveDigests.fileName) is not a list of SHA-256 sums"
        case .fileChanged(let name):
            "its file \(name) has changed since the export, according to "
                + "\(ArchiveDigests.fileName); export it again, or remove that list if the change "
                + "is intended"
        case .unreadable(let reason): "it cannot be read: \(reason)"
        case .fileDamaged(let name, let reason): "its file \(name) cannot be used: \(reason)"
        }
    }
}
