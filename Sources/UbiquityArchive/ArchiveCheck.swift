// SPDX-License-Identifier: Apache-2.0

internal import Crypto
package import UbiquityCore

/// Checks whether pieces that arrive in order form a whole archive. A transfer may be cut off
/// without notice, and the responder may not be a server at all.
///
/// Keeps a header and the list of digests, but no content.
package struct ArchiveCheck: Sendable {
    /// The number of bytes so far.
    package private(set) var bytes = 0
    private var place = Place.header
    /// The bytes so far of the header or the list of digests.
    private var kept: [UInt8] = []
    private var digests = ArchiveDigests()
    private var listed: ArchiveDigests?
    private var hasManifest = false
    private var zeroBlocks = 0

    private enum Place: Sendable {
        case header
        case content(name: String, SHA256, size: Int, rest: Int, padding: Int)
        /// Within the list of digests.
        case list(rest: Int, padding: Int)
        case skipped(Int)
    }

    /// Programs pad the end of an archive with empty blocks.
    private static let zeroBlocksMax = 128

    package init() {}

    /// - Throws: ``ArchiveError`` as soon as this cannot become a whole archive.
    package mutating func take(_ piece: [UInt8]) throws(ArchiveError) {
        bytes += piece.count
        guard bytes <= Archive.bytesMax else { throw .tooLarge(max: Archive.bytesMax) }
        var rest = piece[...]
        while !rest.isEmpty { try takeOne(&rest) }
    }

    /// Must be called after the last piece.
    /// - Returns: Whether the archive has digests. Archives of version 0.1 have none.
    /// - Throws: ``ArchiveError``.
    package func finish() throws(ArchiveError) -> Bool {
        guard case .header = place, kept.isEmpty, zeroBlocks >= 2, hasManifest else {
            throw .incomplete
        }
        guard let listed else { return false }
        guard listed.digests == digests.digests else { throw .incomplete }
        return true
    }

    /// How much of a store's file has arrived, from 0 to 1. Always 0 for a store whose identifier is
    /// too long to be the name of a file.
    package func part(of store: StoreIdentifier) -> Double {
        let file = Archive.storesFolder + store.string + Archive.suffix
        if digests.digests[file] != nil { return 1 }
        guard case .content(file, _, let size, let rest, _) = place, size > 0 else { return 0 }
        return Double(size - rest) / Double(size)
    }

    private mutating func takeOne(_ rest: inout ArraySlice<UInt8>) throws(ArchiveError) {
        switch place {
        case .header:
            kept += rest.popPrefix(TarHeader.blockBytes - kept.count)
            guard kept.count == TarHeader.blockBytes else { return }
            defer { kept = [] }
            try begin(at: bytes - rest.count - TarHeader.blockBytes)
        case .content(let name, var hash, let size, let left, let padding):
            let part = rest.popPrefix(left)
            part.withUnsafeBytes { hash.update(bufferPointer: $0) }
            place = .content(
                name: name, hash, size: size, rest: left - part.count, padding: padding)
            guard part.count == left else { return }
            digests.add(name, hash)
            skip(padding)
        case .list(let left, let padding):
            kept += rest.popPrefix(left - kept.count)
            guard kept.count == left else { return }
            guard let list = ArchiveDigests(content: kept) else { throw .digestsInvalid }
            (listed, kept) = (list, [])
            skip(padding)
        case .skipped(let left):
            skip(left - rest.popPrefix(left).count)
        }
    }

    /// - Parameter offset: The offset of the header that has arrived.
    private mutating func begin(at offset: Int) throws(ArchiveError) {
        if kept.allSatisfy({ $0 == 0 }) {
            zeroBlocks += 1
            guard hasManifest, zeroBlocks <= Self.zeroBlocksMax else { throw .incomplete }
            return
        }
        guard zeroBlocks == 0, listed == nil, TarHeader.isTar(kept) else { throw .notTar }
        let header = try TarHeader(kept[...], offset: offset)
        guard header.size <= Archive.bytesMax else { throw .tooLarge(max: Archive.bytesMax) }
        let padding = TarHeader.paddedBytes(header.size) - header.size
        guard header.kind == TarHeader.Kind.file.rawValue else {
            return skip(header.size + padding)
        }
        let name = try TarName.checked(header.name)
        guard digests.digests[name] == nil else { throw .twice(name) }
        guard digests.digests.count < TarReader.membersMax else {
            throw .tooManyMembers(max: TarReader.membersMax)
        }
        if name == ArchiveManifest.fileName { hasManifest = true }
        if name == ArchiveDigests.fileName {
            guard header.size <= ArchiveDigests.bytesMax else { throw .digestsInvalid }
            place = .list(rest: header.size, padding: padding)
        } else {
            place = .content(
                name: name, SHA256(), size: header.size, rest: header.size, padding: padding)
        }
        // An empty file needs no further piece.
        if header.size == 0 {
            var none: ArraySlice<UInt8> = []
            kept = []
            try takeOne(&none)
        }
    }

    private mutating func skip(_ count: Int) { place = count == 0 ? .header : .skipped(count) }
}

extension ArraySlice {
    /// Removes and returns up to this many of the first elements.
    fileprivate mutating func popPrefix(_ count: Int) -> ArraySlice {
        let part = prefix(count)
        self = dropFirst(part.count)
        return part
    }
}
