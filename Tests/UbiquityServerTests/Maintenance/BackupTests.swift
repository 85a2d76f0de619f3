// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import GRDB
import Testing
import UbiquityCore
import UbiquityServer
import UbiquityWire

// One after the other: each test has servers of its own, and others measure time meanwhile.
@Suite(.serialized) struct BackupTests {
    private func backUp(_ server: RunningServer, _ name: String = "copy") throws -> String {
        let backup = try Backup(
            of: server.folder.file("data"), to: server.folder.file(name), replaces: false,
            secondsMax: 60)
        return backup.path
    }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    private func texts(_ answer: RunningServer.Answer) throws -> [String: String] {
        let records = try answer.message(WireChanges.self).records
        return Dictionary(uniqueKeysWithValues: records.map { ($0.key, $0.value.string) })
    }

    @Test func `a backup is complete, and only its owner can access it`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            try await device.set("a", "1")
            let copy = try backUp(server)
            #expect(try mode(copy) == 0o600)
            let names = try FileManager.default.contentsOfDirectory(atPath: server.folder.path)
            #expect(names.sorted() == ["copy", "data"])
        }
    }

    @Test func `a file that is there stays as it is unless it may be replaced`() async throws {
        try await withServer { server in
            let path = server.folder.file("copy")
            try Data("mine".utf8).write(to: URL(fileURLWithPath: path))
            #expect(throws: AtomicFileError.self) { try backUp(server) }
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
            let backup = try Backup(
                of: server.folder.file("data"), to: path, replaces: true, secondsMax: 60)
            #expect(backup.size > 4_096)
            #expect(try mode(path) == 0o600)
        }
    }

    @Test(.enabled(if: geteuid() == 0))
    func `root writes no backup where another user could put a link in its place`() async throws {
        try await withServer { server in
            let place = server.folder.file("place")
            mkdir(place, 0o755)
            func isWritten() -> Bool { (try? backUp(server, "place/\(UUID())")) != nil }
            #expect(isWritten())
            chmod(place, 0o1777)
            #expect(isWritten())
            chmod(place, 0o775)
            #expect(!isWritten())
            chmod(place, 0o755)
            chown(place, 65_534, 65_534)
            #expect(!isWritten())
            let names = try FileManager.default.contentsOfDirectory(atPath: place)
            #expect(names.count == 2)
        }
    }

    @Test func `there is no backup of a folder without a server's data`() throws {
        let folder = try TemporaryFolder()
        #expect(throws: ServerStartError.noServerData(path: folder.path)) {
            _ = try Backup(
                of: folder.path, to: folder.file("copy"), replaces: false, secondsMax: 60)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func `what was deleted before a backup, and is in no history, is not in its file`()
        async throws
    {
        let secret = "a value that nobody should find again, \(UUID().uuidString)"
        try await withServer {
            $0.historySeconds = 0
        } _: { server in
            let device = try await server.newDevice()
            try await device.set("a", secret)
            _ = try await device.push([.write("a", nil)])
            let copy = try Data(contentsOf: URL(fileURLWithPath: try backUp(server)))
            #expect(copy.range(of: Data(secret.utf8)) == nil)
        }
    }

    @Test func `a backup amid many pushes has each of them completely or not at all`() async throws
    {
        let folder = try TemporaryFolder()
        var copies: [String] = []
        try await withServer(in: folder) { server in
            let device = try await server.newDevice()
            for number in 0..<3 {
                let storm = Task {
                    for round in 0..<40 {
                        let text = "\(number)-\(round)"
                        _ = try await device.push([.write("left", text), .write("right", text)])
                    }
                }
                while try await texts(device.pull())["left"]?.hasPrefix("\(number)-") != true {
                    await Task.yield()
                }
                copies.append(try backUp(server, "copy-\(number)"))
                try await storm.value
            }
        }
        var rounds: Set<String> = []
        for copy in copies {
            let pair = try pair(in: copy)
            #expect(pair.count == 2)
            #expect(Set(pair.values).count == 1)
            rounds.formUnion(pair.values)
        }
        #expect(rounds.count == 3)
    }

    /// The two keys of the storm, as the file has them.
    private func pair(in path: String) throws -> [String: String] {
        var configuration = Configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        return try queue.read { db in
            let rows = try Row.fetchAll(db, sql: "SELECT key, value FROM record WHERE key <> x''")
            return Dictionary(
                uniqueKeysWithValues: try rows.map { row in
                    let value = try WireFormat.protobuf.decode(
                        WireValue.self, from: row[1] as Data)
                    return (String(decoding: row[0] as Data, as: UTF8.self), value.string)
                })
        }
    }
}
