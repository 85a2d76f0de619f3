// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Logging
internal import Testing
internal import UbiquityServer
internal import UbiquityWire

struct StartTests {
    private func expectStart(
        in folder: TemporaryFolder, toThrow expected: (ServerStartError) -> Bool,
        _ configure: (inout ServerSettings) -> Void = { _ in }
    ) async throws {
        let error = await #expect(throws: ServerStartError.self) {
            try await RunningServer.start(in: folder, configure).stop()
        }
        let found = try #require(error)
        #expect(expected(found), "\(found)")
    }

    private func execute(_ sql: String, in path: String) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }

    @Test func `a taken port is named`() async throws {
        try await withServer { server in
            try await expectStart(
                in: TemporaryFolder(),
                toThrow: { $0 == .portTaken(host: "127.0.0.1", port: server.port) },
                { $0.port = server.port })
        }
    }

    @Test func `a second server on the same folder is refused`() async throws {
        try await withServer { server in
            let path = server.folder.file("data")
            try await expectStart(in: server.folder, toThrow: { $0 == .folderInUse(path: path) })
        }
    }

    @Test func `a file in place of the folder is named`() async throws {
        let folder = try TemporaryFolder()
        try Data().write(to: URL(fileURLWithPath: folder.file("data")))
        try await expectStart(
            in: folder,
            toThrow: {
                if case .folderUnusable(folder.file("data"), _) = $0 { true } else { false }
            })
    }

    @Test func `a damaged database is named and stays as it is`() async throws {
        let folder = try TemporaryFolder()
        try await withServer(in: folder) { server in
            try await server.newDevice().set("a", "1")
        }
        let url = URL(fileURLWithPath: folder.file("data/ubiquity.sqlite"))
        var bytes = try Data(contentsOf: url)
        bytes.replaceSubrange(4_096..., with: Data(repeating: 0x5A, count: bytes.count - 4_096))
        try bytes.write(to: url)
        try await expectStart(
            in: folder,
            toThrow: { if case .databaseDamaged(url.path, _) = $0 { true } else { false } })
        #expect(try Data(contentsOf: url) == bytes)
    }

    @Test func `a file that is not a database is named`() async throws {
        let folder = try TemporaryFolder()
        try await withServer(in: folder) { _ in }
        let url = URL(fileURLWithPath: folder.file("data/ubiquity.sqlite"))
        try Data(repeating: 0x5A, count: 10_000).write(to: url)
        try await expectStart(
            in: folder,
            toThrow: { if case .databaseDamaged(url.path, _) = $0 { true } else { false } })
    }

    @Test func `a database of a newer program is refused`() async throws {
        let folder = try TemporaryFolder()
        try await withServer(in: folder) { _ in }
        let path = folder.file("data/ubiquity.sqlite")
        try execute("PRAGMA user_version = 99", in: path)
        try await expectStart(
            in: folder, toThrow: { $0 == .databaseNewer(path: path, version: 99, known: 1) })
    }

    @Test func `a database of another program is refused`() async throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: folder.file("data"), withIntermediateDirectories: true)
        let path = folder.file("data/ubiquity.sqlite")
        try execute("CREATE TABLE t (x)", in: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        try await expectStart(in: folder, toThrow: { $0 == .databaseForeign(path: path) })
    }

    @Test func `only the owner can access the data folder and its files`() async throws {
        try await withServer { server async throws in
            func mode(_ name: String) throws -> Int? {
                let attributes = try FileManager.default.attributesOfItem(
                    atPath: server.folder.file(name))
                return (attributes[.posixPermissions] as? NSNumber)?.intValue
            }
            #expect(try mode("data") == 0o700)
            let names = ["operator-credential", "ubiquity.sqlite", "ubiquity.sqlite-wal"]
            for name in names { #expect(try mode("data/\(name)") == 0o600) }
        }
    }

    /// Root may do anything, so that a process of its own becomes another user.
    @Test func `another user's folder is reported as permission denied, not as empty`() async throws
    {
        let path = NSTemporaryDirectory() + "ubiquity-of-another-user"
        try? FileManager.default.removeItem(atPath: path)
        defer {
            chmod(path, 0o700)
            try? FileManager.default.removeItem(atPath: path)
        }
        await #expect(processExitsWith: .success) {
            let path = NSTemporaryDirectory() + "ubiquity-of-another-user"
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true)
            try Data().write(to: URL(fileURLWithPath: path + "/ubiquity.sqlite"))
            chmod(path, geteuid() == 0 ? 0o700 : 0)
            if geteuid() == 0 { setuid(65_534) }
            await #expect {
                _ = try await FolderSocket.ofServer(on: path)
            } throws: { isDenied($0) }
            #expect {
                try Backup(of: path, to: path + "-copy", replaces: false, secondsMax: 1)
            } throws: { isDenied($0) }
            #expect(DataFolderInspection(dataFolder: path).canLook == false)
        }
    }

    /// Its owner could put another credential there, and links.
    @Test(.enabled(if: geteuid() == 0))
    func `root does not treat another user's folder as its own`() async throws {
        let folder = try TemporaryFolder()
        let (data, copy) = (folder.file("data"), folder.file("copy"))
        try await withServer(in: folder) { server in
            _ = try await server.newDevice()
            _ = try Backup(of: data, to: copy, replaces: false, secondsMax: 60)
        }
        let credential = data + "/operator-credential"
        try Data("ubo_of-the-one-who-has-the-folder".utf8)
            .write(to: URL(fileURLWithPath: credential))
        chown(data, 65_000, 65_000)
        try await expectStart(in: folder, toThrow: isDenied)
        #expect {
            try Backup(of: data, to: copy + "-2", replaces: false, secondsMax: 60)
        } throws: { isDenied($0) }
        #expect {
            try Restoration(of: copy, into: data, replaces: true, signsOutDevices: false)
        } throws: { isDenied($0) }
        // As an unprivileged container shows users of its host.
        chown(data, 65_534, 65_534)
        try await expectStart(in: folder) { "\($0)".contains("on the host, give it to the user") }
        chown(data, 0, 0)
        chown(credential, 65_000, 65_000)
        try await expectStart(
            in: folder,
            toThrow: { "\($0)".contains("operator-credential") && "\($0)".contains("belongs") })
    }

    @Test func `a folder that others may write to is refused, whatever is to be done there`()
        async throws
    {
        let folder = try TemporaryFolder()
        let (data, copy) = (folder.file("data"), folder.file("copy"))
        try await withServer(in: folder) { _ in
            _ = try Backup(of: data, to: copy, replaces: false, secondsMax: 60)
        }
        chmod(data, 0o770)
        func isRefused(_ error: any Error) -> Bool { "\(error)".contains("chmod go-w \(data)") }
        try await expectStart(in: folder, toThrow: isRefused)
        await #expect {
            _ = try await FolderSocket.ofServer(on: data)
        } throws: { isRefused($0) }
        #expect {
            try Backup(of: data, to: copy, replaces: true, secondsMax: 60)
        } throws: { isRefused($0) }
        #expect {
            try Restoration(of: copy, into: data, replaces: true, signsOutDevices: false)
        } throws: { isRefused($0) }
    }

    @Test func `a link in place of the lock leads nowhere`() async throws {
        let folder = try TemporaryFolder()
        try await withServer(in: folder) { _ in }
        let (lock, other) = (folder.file("data/lock"), folder.file("other"))
        try FileManager.default.removeItem(atPath: lock)
        try FileManager.default.createSymbolicLink(atPath: lock, withDestinationPath: other)
        try await expectStart(
            in: folder, toThrow: { if case .fileUnusable(lock, _) = $0 { true } else { false } })
        #expect(!FileManager.default.fileExists(atPath: other))
        #expect(DataFolderInspection(dataFolder: folder.file("data")).isRunning == nil)
    }

    @Test func `what was stored is there after a restart, and cursors hold`() async throws {
        let folder = try TemporaryFolder()
        var credential = ""
        var cursor = ""
        try await withServer(in: folder) { server in
            let device = try await server.newDevice()
            credential = device.credential
            cursor = try await device.set("a", "1").cursor
            try await device.set("b", "1")
        }
        try await withServer(in: folder) { server in
            let changes = try await server.send(
                "GET", "/v1/stores/notes/changes?since=\(cursor)", credential: credential
            ).message(WireChanges.self)
            #expect(changes.records.map(\.key) == ["b"])
        }
    }
}

private func isDenied(_ error: any Error) -> Bool {
    if case .notPermitted(_, .some)? = error as? ServerStartError {
        return "\(error)".contains("permission denied") && "\(error)".contains("sudo")
    }
    return false
}
