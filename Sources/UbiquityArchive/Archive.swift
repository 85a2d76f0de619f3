// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// An archive of an account, read and checked. Keeps one of its files in memory at a time.
package struct Archive: Sendable {
    package let manifest: ArchiveManifest
    private let read: Read
    private let files: [String: Range<Int>]
    private let digests: ArchiveDigests?

    static let storesFolder = "stores/"
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

    /// Files other than the manifest and those of stores are ignored: a system may have added them.
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
            throw .fileDamaged(store.file, reason: "its root is no dictionary")
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
