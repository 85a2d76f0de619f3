// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquityArchive
import UbiquityCore

/// With the `tar` of the system, GNU's or another's. One after the other, for each blocks a thread.
@Suite(.serialized) struct TarProgramTests {
    private let folder = NSTemporaryDirectory() + "ubiquity-archive-" + UUID().uuidString

    init() throws {
        try FileManager.default.createDirectory(
            atPath: folder + "/unpacked", withIntermediateDirectories: true)
    }

    /// - Returns: What it printed.
    @discardableResult
    private func tar(_ arguments: String...) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["tar"] + arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let text = String(decoding: data, as: UTF8.self)
        try #require(process.terminationStatus == 0, "tar \(arguments): \(text)")
        return text
    }

    private func unpackExport() throws {
        let bytes = Samples.archive([
            Samples.notes: Samples.everything, try StoreIdentifier("b"): [:],
        ])
        try Data(bytes).write(to: URL(fileURLWithPath: folder + "/export.tar"))
        try tar("-xf", "export.tar", "-C", "unpacked")
    }

    private func check(_ file: String) throws {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder + "/" + file)))
        let archive = try Archive(bytes, readText: TextReader.read)
        #expect(archive.manifest.stores.map(\.identifier.string) == ["TEAM.example.notes", "b"])
        let entries = try archive.entries(of: archive.manifest.stores[0], readText: TextReader.read)
        #expect(entries.count == Samples.everything.count)
        for (key, value) in Samples.everything { #expect(entries[key.name] == value, "\(key)") }
    }

    @Test func `tar lists and unpacks an export without a word`() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try unpackExport()
        let names = try tar("-tf", "export.tar")
        #expect(
            names
                == "stores/TEAM.example.notes.plist\nstores/b.plist\nmanifest.plist\nSHA256SUMS\n")
        let attributes = try FileManager.default.attributesOfItem(
            atPath: folder + "/unpacked/manifest.plist")
        #expect((attributes[.posixPermissions] as? Int) == 0o600)
    }

    @Test(arguments: ["ustar", "posix", "gnu"])
    func `what tar packs again from the same files is an archive`(_ format: String) throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try unpackExport()
        try tar("--format=\(format)", "-cf", "folder.tar", "-C", "unpacked", ".")
        try check("folder.tar")
        try tar(
            "--format=\(format)", "-cf", "files.tar", "-C", "unpacked", "manifest.plist", "stores")
        try check("files.tar")
    }
}
