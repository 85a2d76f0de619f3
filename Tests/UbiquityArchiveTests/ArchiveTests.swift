// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquityCore

@testable import UbiquityArchive

struct ArchiveTests {
    private func read(_ bytes: [UInt8]) throws -> Archive {
        try Archive(bytes, readText: TextReader.read)
    }

    private func error(_ bytes: [UInt8]) -> ArchiveError? {
        do throws(ArchiveError) {
            _ = try Archive(bytes, readText: TextReader.read)
            return nil
        } catch { return error }
    }

    private func file(_ name: String, _ content: [UInt8] = [], kind: UInt8 = 0x30) -> [UInt8] {
        var header = TarHeader(name: name, size: content.count, time: 0)
        header.kind = kind
        let padding = TarHeader.paddedBytes(content.count) - content.count
        return header.block + content + [UInt8](repeating: 0, count: padding)
    }

    private let end = [UInt8](repeating: 0, count: 2 * TarHeader.blockBytes)

    /// An archive of one store with one key, and something before it.
    private func archive(after bytes: [UInt8]) -> [UInt8] {
        bytes + Samples.archive([Samples.notes: [Samples.key("a"): .integer(1)]])
    }

    @Test func `an archive has every value of every store, and what its manifest says`() throws {
        let long = try StoreIdentifier(String(repeating: "x", count: 255))
        let stores = [Samples.notes: Samples.everything, long: [Samples.key("a"): .integer(1)]]
        let archive = try read(Samples.archive(stores))
        #expect(archive.manifest.accountName == "Ada & Söhne")
        #expect(archive.manifest.made == Samples.made)
        #expect(archive.manifest.devices.map(\.seenMilliseconds) == [Samples.made])
        #expect(Set(archive.manifest.stores.map(\.identifier)) == Set(stores.keys))
        for store in archive.manifest.stores {
            let entries = try archive.entries(of: store, readText: TextReader.read)
            let values = try #require(stores[store.identifier])
            #expect(
                entries == Dictionary(uniqueKeysWithValues: values.map { ($0.key.name, $0.value) }))
            #expect(store.bytes == values.values.reduce(0) { $0 + $1.quotaBytes })
        }
    }

    @Test func `two keys of a store that look alike are both in its archive`() throws {
        let values: [Key: PropertyListValue] = [
            Samples.key("\u{E9}"): .integer(1), Samples.key("e\u{301}"): .integer(2),
        ]
        let archive = try read(Samples.archive([Samples.notes: values]))
        let entries = try archive.entries(of: archive.manifest.stores[0], readText: TextReader.read)
        #expect(entries.count == 2)
    }

    @Test func `what XML can carry is XML, for people to read`() throws {
        let text = String(
            decoding: Samples.archive([Samples.notes: [Samples.key("a"): .string("x")]]),
            as: UTF8.self)
        #expect(text.contains("\t<key>a</key>\n\t<string>x</string>\n"))
        #expect(!text.contains("bplist"))
    }

    @Test func `an archive that ends anywhere before its end is not complete`() {
        let whole = Samples.archive([Samples.notes: [Samples.key("a"): .integer(1)]])
        for count in stride(from: 0, to: whole.count - 1_023, by: 97) {
            #expect(error(Array(whole.prefix(count))) != nil, "\(count)")
        }
        #expect(error(Array(whole.prefix(whole.count - 1_024))) == .incomplete)
    }

    @Test(
        arguments: [
            "../evil", "/etc/passwd", "stores/../../evil", "stores//a", "a\\b", "c:evil", "a\u{1}b",
            "..", "stores/..",
        ])
    func `a name that could lead out of a folder is refused`(_ name: String) {
        guard case .nameUnsafe? = error(archive(after: file(name))) else {
            Issue.record("\(name) was taken")
            return
        }
    }

    @Test(arguments: [0x31, 0x32, 0x33, 0x34, 0x36, 0x4C, 0x4B, 0x53] as [UInt8])
    func `links, devices and GNU's long names are refused`(_ kind: UInt8) {
        #expect(error(archive(after: file("x", kind: kind))) == .notFile("x"))
    }

    @Test(arguments: ["path=evil", "size=9", "linkpath=x", "GNU.sparse.name=x"])
    func `an extended header that overrules the real one is refused`(_ field: String) {
        let record = Array("30 mtime=1\r\n\(field.utf8.count + 4) \(field)\n".utf8)
        guard case .notFile? = error(archive(after: file("x", record, kind: 0x78))) else {
            Issue.record("\(field) was taken")
            return
        }
    }

    @Test func `an extended header with a time is passed over`() throws {
        let record = Array("20 mtime=1234567.89\n".utf8)
        #expect(try read(archive(after: file("x", record, kind: 0x78))).manifest.stores.count == 1)
    }

    @Test func `a file that is there twice is refused`() {
        #expect(error(archive(after: file("manifest.plist"))) == .twice("manifest.plist"))
        #expect(error(archive(after: file("./manifest.plist"))) == .twice("manifest.plist"))
    }

    @Test func `a size that reaches beyond the end is refused`() {
        var block = TarHeader(name: "manifest.plist", size: 1 << 32, time: 0).block
        #expect(error(block + end) == .incomplete)
        block.replaceSubrange(124..<136, with: [0x80] + Array(repeating: 0xFF, count: 11))
        #expect(error(block + end) == .headerDamaged(offset: 0))
    }

    @Test func `a header whose sum is wrong is refused`() {
        var bytes = archive(after: [])
        bytes[0] ^= 1
        #expect(error(bytes) == .headerDamaged(offset: 0))
    }

    @Test func `more files than an account can have are refused`() {
        let many = (0...TarReader.membersMax).flatMap { file("f\($0)") }
        #expect(error(many + end) == .tooManyMembers(max: TarReader.membersMax))
    }

    @Test func `a store's file that the manifest does not list, or lists in vain, is refused`() {
        #expect(
            error(archive(after: file("stores/other.plist"))) == .fileUnlisted("stores/other.plist")
        )
        let whole = archive(after: [])
        #expect(
            error(Array(whole.dropFirst(1_024))) == .fileMissing("stores/TEAM.example.notes.plist"))
    }

    @Test func `an archive without a manifest is refused`() {
        #expect(error(file("a.txt", [65]) + end) == .manifestMissing)
        #expect(error(Array("<plist>".utf8)) == .notTar)
    }

    @Test func `an archive of a later format says which program can read it`() {
        let manifest = BinaryPropertyList.encode(.dictionary(["format": .integer(2)]))
        #expect(error(file("manifest.plist", manifest) + end) == .newer(format: 2, known: 1))
    }

    @Test func `every error is a sentence`() {
        let errors: [ArchiveError] = [
            .notTar, .incomplete, .tooLarge(max: 1 << 30), .headerDamaged(offset: 1),
            .nameUnsafe("x"), .twice("x"), .notFile("x"), .tooManyMembers(max: 1),
            .manifestMissing, .manifestInvalid("x"), .newer(format: 2, known: 1),
            .fileMissing("x"), .fileUnlisted("x"), .fileDamaged("x", reason: "y"),
            .digestsInvalid, .fileChanged("x"), .unreadable("x"),
        ]
        for error in errors {
            #expect("\(error)".split(separator: " ").count > 3)
            #expect(!"\(error)".hasSuffix("."))
        }
    }
}

extension ArchiveTests {
    private func check(_ bytes: [UInt8], pieces: Int = 100) throws -> Bool {
        var check = ArchiveCheck()
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            try check.take(Array(bytes[start..<min(start + pieces, bytes.count)]))
        }
        #expect(check.bytes == bytes.count)
        return try check.finish()
    }

    @Test(arguments: [1, 100, 512, 1 << 20])
    func `an archive that comes in pieces is complete at its end, and not before`(
        _ pieces: Int
    ) throws {
        let bytes = Samples.archive([Samples.notes: [Samples.key("a"): .integer(1)]])
        #expect(try check(bytes, pieces: pieces))
        for count in stride(from: 0, to: bytes.count, by: 100) {
            #expect(throws: ArchiveError.self) { try check(Array(bytes[..<count])) }
        }
    }

    @Test(arguments: [1, 100, 512, 1 << 20])
    func `a damaged header is found where it begins, in pieces and when it is read`(
        _ pieces: Int
    ) throws {
        var bytes = Samples.archive([Samples.notes: [Samples.key("a"): .integer(1)]])
        let place = try #require(bytes.firstRange(of: Array("manifest.plist".utf8))?.lowerBound)
        bytes[place] ^= 1
        #expect(throws: ArchiveError.headerDamaged(offset: place)) {
            try check(bytes, pieces: pieces)
        }
        #expect(error(bytes) == .headerDamaged(offset: place))
    }

    @Test func `how much of each store has come is known while an archive comes`() throws {
        let long = try StoreIdentifier(String(repeating: "x", count: 255))
        let values = [
            Samples.key("a"): PropertyListValue.string(String(repeating: "a", count: 4_000))
        ]
        var check = ArchiveCheck()
        var parts: [Double] = [0]
        for byte in Samples.archive([Samples.notes: values, long: values]) {
            try check.take([byte])
            parts.append(check.part(of: Samples.notes))
            #expect(check.part(of: long) == 0)
        }
        #expect(
            parts == parts.sorted() && parts.last == 1 && parts.count { 0 < $0 && $0 < 1 } > 3_000)
    }

    @Test func `what is not as it was exported is noticed, in pieces and when it is read`() throws {
        let bytes = Samples.archive([Samples.notes: [Samples.key("key"): .string("value")]])
        let place = try #require(bytes.firstRange(of: Array("value".utf8))?.lowerBound)
        var changed = bytes
        changed[place] ^= 1
        #expect(throws: ArchiveError.incomplete) { try check(changed) }
        let archive = try read(changed)
        #expect(archive.hasDigests)
        let store = archive.manifest.stores[0]
        #expect(throws: ArchiveError.fileChanged(store.file)) {
            try archive.entries(of: store, readText: TextReader.read)
        }
        let account = try #require(bytes.firstRange(of: Array("Ada".utf8))?.lowerBound)
        changed = bytes
        changed[account] ^= 1
        #expect(error(changed) == .fileChanged("manifest.plist"))
    }

    @Test func `an archive of version 0.1, which has no digests, is read, and said to have none`()
        throws
    {
        let bytes = Samples.archive([Samples.notes: [Samples.key("a"): .integer(1)]])
        let list = try #require(bytes.firstRange(of: Array("SHA256SUMS".utf8))?.lowerBound)
        let old = Array(bytes[..<list]) + end
        #expect(try check(old) == false)
        let archive = try read(old)
        #expect(!archive.hasDigests && archive.manifest.stores.count == 1)
    }

    @Test func `zeros, and what follows an end, are not an archive`() throws {
        #expect(throws: ArchiveError.incomplete) {
            try check([UInt8](repeating: 0, count: 10_240))
        }
        let bytes = Samples.archive([:])
        #expect(try check(bytes + end))
        #expect(throws: ArchiveError.self) {
            try check(bytes + [UInt8](repeating: 0, count: 1 << 20))
        }
        #expect(throws: ArchiveError.notTar) { try check(bytes + bytes) }
        #expect(throws: ArchiveError.incomplete) { try ArchiveCheck().finish() }
    }

    @Test func `the list of digests is as sha256sum writes it`() throws {
        let bytes = Samples.archive([Samples.notes: [Samples.key("a"): .integer(1)]])
        let header = try #require(bytes.firstRange(of: Array("SHA256SUMS".utf8))?.lowerBound)
        let text = String(decoding: bytes[(header + 512)...].prefix { $0 != 0 }, as: UTF8.self)
        let lines = text.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.wholeMatch(of: /[0-9a-f]{64}  \S+/) != nil }, "\(text)")
        #expect(lines[0].hasSuffix("  manifest.plist"))
    }
}
