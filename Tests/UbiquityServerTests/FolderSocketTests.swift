// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// The operators' way into a data folder, through the socket of the running server.
struct FolderSocketTests {
    private let folder: TemporaryFolder
    private var data: String { folder.file("data") }

    init() throws { folder = try TemporaryFolder() }

    @discardableResult
    private func create(
        _ name: String, codeSeconds: UInt64 = 0, in data: String? = nil
    ) async throws -> RunningServer.Answer {
        let socket = try await FolderSocket.ofServer(on: data ?? self.data)
        var account = WireNewAccount()
        account.name = name
        account.codeSeconds = codeSeconds
        return try await RunningServer.send(to: socket, "POST", "/v1/accounts", account)
    }

    private func names(in data: String? = nil) async throws -> [String] {
        let socket = try await FolderSocket.ofServer(on: data ?? self.data)
        return try await RunningServer.send(to: socket, "GET", "/v1/accounts")
            .message(WireAccountList.self).accounts.map(\.name)
    }

    private func expectNoServer() async {
        await #expect(throws: ServerStartError.noServer(path: data)) {
            _ = try await FolderSocket.ofServer(on: data)
        }
    }

    @Test func `an operator's requests need a running server`() async throws {
        await #expect(throws: ServerStartError.noServerData(path: data)) {
            _ = try await FolderSocket.ofServer(on: data)
        }
        try await withServer(in: folder) { server in
            let code = try await create("ada").message(WireNewAccountAnswer.self).code
            #expect(try await create("ada").problem.code == "account-exists")
            #expect(try await server.signIn(code: code).status == 200)
            let audit = try await server.sendInFolder("GET", "/v1/audit")
                .message(WireAuditTrail.self)
            #expect(audit.entries.map(\.deed).contains("account-created"))
            #expect(
                audit.entries.filter { $0.deed != "device-signed-in" }
                    .allSatisfy { $0.actor == "operator-locally" })
        }
        await expectNoServer()
        #expect(
            "\(ServerStartError.noServer(path: data))".contains("ubiquity serve --data \(data)"))
    }

    @Test func `a code is valid for as long as the request says`() async throws {
        func check(_ name: String, codeSeconds: UInt64, is seconds: Int64) async throws {
            let before = nowMilliseconds()
            let answer = try await create(name, codeSeconds: codeSeconds)
                .message(WireNewAccountAnswer.self)
            let valid = (before + seconds * 1_000)...(nowMilliseconds() + seconds * 1_000)
            #expect(valid.contains(Int64(answer.expiresMilliseconds)))
        }
        try await withServer(in: folder, { $0.constants.signInCodeSeconds = 60 }) { _ in
            try await check("a", codeSeconds: 0, is: 60)
            try await check("b", codeSeconds: 60_000_000, is: 60_000_000)
            #expect(try await create("c", codeSeconds: 60_000_001).status == 400)
        }
    }

    @Test func `commands at the same time all succeed`() async throws {
        try await withServer(in: folder) { _ in
            try await withThrowingTaskGroup { group in
                for number in 10..<20 {
                    group.addTask { _ = try await create("n\(number)") }
                }
                try await group.waitForAll()
            }
            #expect(try await names() == (10..<20).map { "n\($0)" })
        }
    }

    @Test func `a server and a command wait until another program has left the folder`()
        async throws
    {
        try await withServer(in: folder) { _ in }
        var lock: FolderLock? = try FolderLock(DataFolder(path: data))
        let starting = Task { try await RunningServer.start(in: folder) }
        let command = Task { _ = try await create("ada") }
        try await Task.sleep(for: .milliseconds(200))
        withExtendedLifetime(lock) {}
        lock = nil
        // The command may have looked when neither had the folder.
        _ = await command.result
        let server = try await starting.value
        try await create("eve")
        #expect(try await names().contains("eve"))
        try await server.stop()
    }

    @Test func `a program that holds the folder and does not answer is reported`() async throws {
        try await withServer(in: folder) { _ in }
        let lock = try FolderLock(DataFolder(path: data))
        var waits = 0
        await #expect(throws: ServerStartError.folderBusy(path: data)) {
            _ = try await FolderLock.take(DataFolder(path: data), within: .seconds(2)) {
                waits += 1
            }
        }
        #expect(waits == 1)
        withExtendedLifetime(lock) {}
    }

    @Test func `a socket that a killed server left is in nobody's way`() async throws {
        try await withServer(in: folder) { _ in }
        try bindSocket("server")
        await expectNoServer()
        try await withServer(in: folder) { _ async throws in
            try await create("ada")
            #expect(try await names() == ["ada"])
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: data + "/sockets")
        #expect(left.isEmpty)
    }

    /// A socket that nothing listens to any more.
    private func bindSocket(_ name: String) throws {
        let address = try SocketAddress(unixDomainSocketPath: data + "/sockets/" + name)
        let file = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #expect(address.withSockAddr { bind(file, $0, socklen_t($1)) } == 0)
        close(file)
    }

    @Test(.enabled(if: geteuid() == 0))
    func `root speaks to another user's server, and no link leads it elsewhere`() async throws {
        try await withServer(in: folder) { _ in
            let (sockets, socket) = (data + "/sockets", data + "/sockets/server")
            for path in [data, sockets, socket] { chown(path, 65_534, 65_534) }
            try await create("ada")
            #expect(try await names() == ["ada"])
            chown(socket, 0, 0)
            await #expect { try await names() } throws: {
                "\($0)".contains("it belongs to another user")
            }
            rename(socket, sockets + "/other")
            symlink(sockets + "/other", socket)
            await #expect(throws: ServerStartError.self) { try await names() }
            unlink(socket)
            rename(sockets + "/other", socket)
            rename(sockets, data + "/others")
            symlink(data + "/others", sockets)
            await #expect(throws: ServerStartError.self) { try await names() }
            unlink(sockets)
            rename(data + "/others", sockets)
            chown(data, 0, 0)
        }
    }

    @Test func `the path of the folder may be longer than that of a socket, and of any characters`()
        async throws
    {
        let data = folder.file("Zoë's 100% data/" + String(repeating: "x", count: 200))
        try await withServer(in: folder, { $0.dataFolder = data }) { _ in
            try await create("ada", in: data)
            #expect(try await names(in: data) == ["ada"])
        }
    }

    @Test func `a server that cannot make its socket says so, and never that it is ready`()
        async throws
    {
        try await withServer(in: folder) { _ in }
        let path = data + "/sockets/server"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        await #expect {
            try await withServer(in: folder) { _ in Issue.record("It was ready.") }
        } throws: { "\($0)".contains(path) }
    }

    @Test func `operators get in when the limits for others are reached`() async throws {
        let configure = { (settings: inout ServerSettings) in
            settings.connectionsMax = 1
            settings.requestAllowance = .init(burst: 1, perSecond: 0.001)
        }
        try await withServer(in: folder, configure) { server in
            let connection = try await RawConnection.open(server.port)
            for name in ["ada", "eve"] {
                #expect(try await create(name).status == 200)
            }
            connection.close()
        }
    }

    @Test func `sockets in a folder that others can enter are refused`() async throws {
        try await withServer(in: folder) { _ in
            chmod(data + "/sockets", 0o755)
            await #expect {
                try await names()
            } throws: { "\($0)".contains("chmod 700 \(data)/sockets") }
        }
        await #expect {
            try await withServer(in: folder) { _ in }
        } throws: { "\($0)".contains("chmod 700 \(data)/sockets") }
    }

    /// Root may do anything, so that a process of its own becomes another user.
    @Test(.enabled(if: geteuid() == 0))
    func `another user cannot connect, even where the folders are open to others`() async throws {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let data = folder.file("data")
            try await withServer(in: folder) { _ in
                let sockets = data + "/sockets"
                for path in [folder.path, data] { chmod(path, 0o755) }
                func connect() async throws {
                    try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                        .connect(unixDomainSocketPath: sockets + "/server").get().close()
                }
                func isDenied(_ error: any Error) -> Bool {
                    (error as? IOError)?.errnoCode == EACCES
                }
                try await connect()
                // `access` asks for the real user.
                setreuid(65_534, 0)
                seteuid(65_534)
                await #expect { try await connect() } throws: { isDenied($0) }
                await #expect {
                    _ = try await FolderSocket.ofServer(on: data)
                } throws: { "\($0)".contains("permission denied") }
                seteuid(0)
                chmod(sockets, 0o755)
                seteuid(65_534)
                await #expect { try await connect() } throws: { isDenied($0) }
                seteuid(0)
            }
        }
    }
}
