// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// The operators' way into a data folder: through the running server, or through one of the
/// command's own.
struct FolderServerTests {
    private let folder: TemporaryFolder
    private var data: String { folder.file("data") }

    init() throws { folder = try TemporaryFolder() }

    @discardableResult
    private func create(
        _ name: String, codeSeconds: UInt64 = 0, in data: String? = nil
    ) async throws -> RunningServer.Answer {
        try await FolderServer.with(dataFolder: data ?? self.data) { server in
            var account = WireNewAccount()
            account.name = name
            account.codeSeconds = codeSeconds
            return try await RunningServer.send(to: server, "POST", "/v1/accounts", account)
        }
    }

    private func names(in data: String? = nil) async throws -> [String] {
        try await FolderServer.with(dataFolder: data ?? self.data) { server in
            try await RunningServer.send(to: server, "GET", "/v1/accounts")
                .message(WireAccountList.self).accounts.map(\.name)
        }
    }

    private func isRunning() async throws -> Bool {
        try await FolderServer.with(dataFolder: data) { $0.isRunning }
    }

    @Test func `a command serves itself while no server is running`() async throws {
        try await withServer(in: folder) { _ async throws in
            #expect(try await isRunning())
        }
        #expect(try await !isRunning())
        let code = try await create("ada").message(WireNewAccountAnswer.self).code
        #expect(try await create("ada").problem.code == "account-exists")
        try await withServer(in: folder) { server in
            #expect(try await server.signIn(code: code).status == 200)
            let audit = try await server.sendInFolder("GET", "/v1/audit")
                .message(WireAuditTrail.self)
            #expect(audit.entries.map(\.deed).contains("account-created"))
            #expect(
                audit.entries.filter { $0.deed != "device-signed-in" }
                    .allSatisfy { $0.actor == "operator-locally" })
        }
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
            try await check("b", codeSeconds: 3_600, is: 3_600)
            #expect(try await create("c", codeSeconds: 60_000_001).status == 400)
        }
        try await check("d", codeSeconds: 0, is: 600)
        try await check("e", codeSeconds: 60_000_000, is: 60_000_000)
    }

    @Test(arguments: [true, false])
    func `commands at the same time all succeed`(isRunning: Bool) async throws {
        func createMany() async throws {
            try await withThrowingTaskGroup { group in
                for number in 10..<20 {
                    group.addTask { _ = try await create("n\(number)") }
                }
                try await group.waitForAll()
            }
        }
        try await withServer(in: folder) { _ in if isRunning { try await createMany() } }
        if !isRunning { try await createMany() }
        #expect(try await names() == (10..<20).map { "n\($0)" })
    }

    @Test func `a server that is started waits until a command has ended`() async throws {
        try await withServer(in: folder) { _ in }
        let starting = try await FolderServer.with(dataFolder: data) { server in
            let starting = Task { try await RunningServer.start(in: folder) }
            var account = WireNewAccount()
            account.name = "ada"
            _ = try await RunningServer.send(to: server, "POST", "/v1/accounts", account)
            return starting
        }
        let server = try await starting.value
        #expect(try await isRunning())
        #expect(try await names() == ["ada"])
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
        for name in ["server", "command"] {
            let address = try SocketAddress(unixDomainSocketPath: data + "/sockets/" + name)
            let file = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            #expect(address.withSockAddr { bind(file, $0, socklen_t($1)) } == 0)
            close(file)
        }
        #expect(try await !isRunning())
        try await create("ada")
        try await withServer(in: folder) { _ async throws in
            #expect(try await isRunning())
            #expect(try await names() == ["ada"])
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: data + "/sockets")
        #expect(left.isEmpty)
    }

    @Test func `the path of the folder may be longer than that of a socket, and of any characters`()
        async throws
    {
        let data = folder.file("Zoë's 100% data/" + String(repeating: "x", count: 200))
        try await withServer(in: folder, { $0.dataFolder = data }) { _ in
            try await create("ada", in: data)
            #expect(try await names(in: data) == ["ada"])
        }
        try await create("eve", in: data)
        #expect(try await names(in: data) == ["ada", "eve"])
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
        try await withServer(in: folder) { _ in }
        chmod(data + "/sockets", 0o755)
        await #expect {
            try await names()
        } throws: { "\($0)".contains("chmod 700 \(data)/sockets") }
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
                    try await FolderServer.with(dataFolder: data) { _ in }
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
