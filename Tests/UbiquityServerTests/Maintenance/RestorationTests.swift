// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import GRDB
import ProcessHarness
import Testing
import UbiquityCore
import UbiquityServer
import UbiquityWire

// One after the other: each test has servers of its own, and others measure time meanwhile.
@Suite(.serialized) struct RestorationTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var data: String { folder.file("data") }

    /// Runs a server, and makes a backup at the end of it.
    private func backUp(
        _ body: (RunningServer) async throws -> Void
    ) async throws -> String {
        var path = ""
        try await withServer(in: folder) { server in
            try await body(server)
            path = try Backup(
                of: data, to: folder.file("copy"), replaces: true, secondsMax: 60
            ).path
        }
        return path
    }

    private func restore(
        _ path: String, replaces: Bool = true, signsOutDevices: Bool = false
    ) throws -> Restoration {
        try Restoration(
            of: path, into: data, replaces: replaces, signsOutDevices: signsOutDevices)
    }

    @Test func `a cursor of what came after the backup belongs to another history`() async throws {
        var device: RunningDevice?
        let copy = try await backUp { server in
            device = try await server.newDevice()
            try await device?.set("a", "old")
        }
        let credential = try #require(device?.credential)
        func cursor(_ server: RunningServer) async throws -> String {
            let answer = try await server.send(
                "GET", "/v1/stores/notes/changes", credential: credential)
            return try answer.message(WireChanges.self).cursor
        }
        func answer(
            _ server: RunningServer, since cursor: String
        ) async throws -> RunningServer.Answer {
            try await server.send(
                "GET", "/v1/stores/notes/changes?since=\(cursor)", credential: credential)
        }
        var (before, after) = ("", "")
        try await withServer(in: folder) { server in
            before = try await cursor(server)
            let later = RunningDevice(server: server, id: "", account: "", credential: credential)
            try await later.set("a", "new")
            after = try await cursor(server)
        }
        let restoration = try restore(copy)
        #expect(restoration.accounts == 1)
        #expect(restoration.devices == 1)
        try await withServer(in: folder) { server in
            #expect(try await answer(server, since: before).status == 200)
            let refused = try await answer(server, since: after)
            #expect(refused.status == 410)
            #expect(try refused.problem.code == "cursor-other-history")
            // As many pushes as the lost history had: the number alone does not tell.
            let later = RunningDevice(server: server, id: "", account: "", credential: credential)
            try await later.set("a", "other")
            #expect(try await answer(server, since: after).status == 410)
        }
    }

    @Test func `nothing is restored under a server that runs`() async throws {
        try await withServer(in: folder) { _ in
            let copy = try Backup(
                of: data, to: folder.file("copy"), replaces: false, secondsMax: 60)
            #expect(throws: BackupError.folderInUse(data)) {
                _ = try restore(copy.path)
            }
        }
    }

    @Test func `data that is there gives way only where it may, and is kept`() async throws {
        let copy = try await backUp { try await $0.newDevice().set("a", "1") }
        let before = try Data(contentsOf: URL(fileURLWithPath: data + "/ubiquity.sqlite"))
        #expect(throws: BackupError.hasData(folder: data)) {
            _ = try restore(copy, replaces: false)
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: data + "/ubiquity.sqlite")) == before)
        let old = try #require(try restore(copy).oldDatabase)
        #expect(try Data(contentsOf: URL(fileURLWithPath: old)) == before)
        let further = try #require(try restore(copy).oldDatabase)
        #expect(further != old)
        let mode = try FileManager.default.attributesOfItem(
            atPath: data + "/ubiquity.sqlite")[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }

    @Test(arguments: ["empty", "text", "cut", "foreign", "spoilt", "missing"])
    func `a damaged backup is not restored, and nothing is changed`(
        _ kind: String
    ) async throws {
        let copy = try await backUp { server in
            let device = try await server.newDevice()
            for number in 0..<40 {
                try await device.set("k\(number)", String(repeating: "x", count: 2_000))
            }
        }
        let bad = folder.file("bad")
        var bytes = try Data(contentsOf: URL(fileURLWithPath: copy))
        switch kind {
        case "empty": bytes = Data()
        case "text": bytes = Data("no database".utf8)
        case "cut": bytes = bytes.prefix(bytes.count / 2)
        case "spoilt":
            // Every page's first bytes, but for the first one's.
            for page in stride(from: 4_096, to: bytes.count, by: 4_096) {
                bytes.replaceSubrange(page..<(page + 64), with: Data(repeating: 0xFF, count: 64))
            }
        case "foreign":
            try FileManager.default.removeItem(atPath: copy)
            let queue = try DatabaseQueue(path: copy)
            try await queue.write { try $0.execute(sql: "CREATE TABLE mine (a)") }
            try queue.close()
            bytes = try Data(contentsOf: URL(fileURLWithPath: copy))
        default: break
        }
        if kind != "missing" { try bytes.write(to: URL(fileURLWithPath: bad)) }
        let before = try FileManager.default.contentsOfDirectory(atPath: data).sorted()
        #expect(throws: BackupError.self) { _ = try restore(bad) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: data).sorted() == before)
    }

    /// As `cp` makes it of a folder whose server runs.
    @Test func `of a copy with a log beside it, what the log has is restored too`() async throws {
        let bad = folder.file("bad")
        var credential = ""
        try await withServer(in: folder) { server in
            let device = try await server.newDevice()
            try await device.set("a", "in the log")
            credential = device.credential
            // Whoever reads keeps the server from emptying the log between the two copies.
            let reading = try ReadingTransaction(data + "/ubiquity.sqlite")
            for suffix in ["", "-wal"] {
                try await Self.copy(data + "/ubiquity.sqlite" + suffix, to: bad + suffix)
            }
            try reading.end()
        }
        try FileManager.default.removeItem(atPath: data)
        #expect(try restore(bad).devices == 1)
        try await withServer(in: folder) { server in
            let answer = try await server.send(
                "GET", "/v1/stores/notes/changes", credential: credential)
            #expect(answer.status == 200)
            #expect(try answer.message(WireChanges.self).records.count == 1)
        }
    }

    /// In a process of its own: to close a database by hand takes its server's locks.
    private static func copy(_ path: String, to place: String) async throws {
        let copying = try await Stage("copy").run(
            [path, place], program: ProgramFile(path: "/bin/cp"))
        #expect(copying.status == 0)
    }

    @Test func `a database that another program reads does not give way, and keeps its log`()
        async throws
    {
        let copy = try await backUp { try await $0.newDevice().set("a", "1") }
        let path = data + "/ubiquity.sqlite"
        let writer = try DatabaseQueue(path: path)
        defer { try? writer.close() }
        try await writer.write { try $0.execute(sql: "DELETE FROM device") }
        let reading = try ReadingTransaction(path)
        try await writer.write { try $0.execute(sql: "DELETE FROM account") }
        let before = try FileManager.default.contentsOfDirectory(atPath: data).sorted()
        #expect(throws: BackupError.inUse(path: path)) { _ = try restore(copy) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: data).sorted() == before)
        withExtendedLifetime(reading) {}
    }

    @Test(arguments: [true, false])
    func `what a restore left that was cut off is removed by the next, and by a start`(
        _ restores: Bool
    ) async throws {
        let copy = try await backUp { try await $0.newDevice().set("a", "1") }
        for name in [".ubiquity.sqlite.1234ABCD", ".ubiquity.sqlite.1234ABCD-journal"] {
            try Data("everybody's values".utf8).write(to: URL(fileURLWithPath: data + "/" + name))
        }
        if restores {
            _ = try restore(copy)
        } else {
            try await withServer(in: folder) { _ in }
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: data)
        #expect(names.contains("ubiquity.sqlite"))
        #expect(!names.contains { $0.hasPrefix(".") })
    }

    @Test func `a damaged database gives way to a backup too`() async throws {
        let copy = try await backUp { try await $0.newDevice().set("a", "1") }
        try Data("damaged".utf8).write(to: URL(fileURLWithPath: data + "/ubiquity.sqlite"))
        try Data("log".utf8).write(to: URL(fileURLWithPath: data + "/ubiquity.sqlite-wal"))
        let old = try #require(try restore(copy).oldDatabase)
        #expect(try String(contentsOfFile: old, encoding: .utf8) == "damaged")
        #expect(!FileManager.default.fileExists(atPath: data + "/ubiquity.sqlite-wal"))
        try await withServer(in: folder) { server in
            let accounts = try await server.sendInFolder("GET", "/v1/accounts")
                .message(WireAccountList.self).accounts
            #expect(accounts.map(\.name) == ["ada"])
        }
    }

    @Test func `a code that was used after the backup does not work again`() async throws {
        var code = ""
        let copy = try await backUp { code = try await $0.invite("ada").code }
        try await withServer(in: folder) { server in
            let answer = try await server.signIn(code: code)
            #expect(answer.status == 200)
        }
        _ = try restore(copy)
        try await withServer(in: folder) { server in
            let answer = try await server.signIn(code: code)
            #expect(answer.status == 401)
        }
    }

    @Test(arguments: [true, false])
    func `a device signed out after the backup is signed in again, unless all are signed out`(
        _ signsOut: Bool
    ) async throws {
        var device: RunningDevice?
        let copy = try await backUp { device = try await $0.newDevice() }
        let (id, credential) = (try #require(device?.id), try #require(device?.credential))
        try await withServer(in: folder) { server in
            let answer = try await server.send(
                "DELETE", "/v1/devices/\(id)", credential: credential)
            #expect(answer.status == 204)
        }
        let restoration = try restore(copy, signsOutDevices: signsOut)
        #expect(restoration.devices == (signsOut ? 0 : 1))
        try await withServer(in: folder) { server in
            let answer = try await server.send("GET", "/v1/account", credential: credential)
            #expect(answer.status == (signsOut ? 401 : 200))
        }
    }

    @Test func `the folder's operator credential stays the operator's`() async throws {
        let copy = try await backUp { _ = try await $0.newDevice() }
        let file = data + "/operator-credential"
        let credential = "ubo_another-one-that-was-written-later"
        try Data(credential.utf8).write(to: URL(fileURLWithPath: file))
        _ = try restore(copy)
        try await withServer(in: folder) { server in
            let answer = try await server.send(
                "POST", "/v1/accounts/ada/codes", credential: credential)
            #expect(answer.status == 200)
        }
    }
}
