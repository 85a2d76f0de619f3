// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    /// The sign-in of a device, by the library and by the command, while an app runs.
    @Suite struct SignInTests {
        @Test func `a sign-in by code says who it is, and a sign-out ends the credential`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = stage.path("home")
                #expect(try UbiquityAccount.current(home: home) == nil)
                let account = try await UbiquityAccount.signIn(
                    server: server.url, code: server.newCode(isFirst: true), deviceName: "desk",
                    home: home)
                #expect(account.name == "ada")
                #expect(account.server == server.url)
                #expect(account.deviceName == "desk")
                #expect(try UbiquityAccount.current(home: home) == account)
                let credential = try #require(
                    try DeviceHome(path: home).load().signedIn?.credential)
                #expect(try await status(of: credential, at: server) == 200)

                try await UbiquityAccount.signOut(home: home)
                #expect(try UbiquityAccount.current(home: home) == nil)
                #expect(try await status(of: credential, at: server) == 401)
                try await UbiquityAccount.signOut(home: home)
            }
        }

        @Test func `a sign-in that cannot be kept changes nothing, here and at the server`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let account = try UbiquityAccount.current(home: home)
                let code = try await server.newCode(isFirst: false)
                func sentence(_ body: () async throws -> Void) async -> String {
                    let error = await #expect(throws: UbiquityError.self) { try await body() }
                    #expect(error?.code == .storage)
                    return "\(error.map { "\($0)" } ?? "")"
                }
                func signIn() async throws {
                    try await UbiquityAccount.signIn(server: server.url, code: code, home: home)
                }
                // Nobody can lock the file. The code is not even used up.
                let (lock, draft) = (home + "/account.lock", home + "/.account.json.new")
                try FileManager.default.removeItem(atPath: lock)
                try FileManager.default.createDirectory(
                    atPath: lock, withIntermediateDirectories: false)
                #expect(await sentence(signIn).contains("account.lock cannot be written"))
                try FileManager.default.removeItem(atPath: lock)
                // Nobody can replace the file.
                try FileManager.default.createDirectory(
                    atPath: draft, withIntermediateDirectories: false)
                #expect(await sentence(signIn).contains("account.json cannot be written"))
                #expect(
                    await sentence { try await UbiquityAccount.signOut(home: home) }
                        .contains("account.json cannot be written"))
                let devices = try await stage.succeed(
                    "device", "list", "--account", "ada", "--data", server.data, "--json")
                #expect(devices.split(separator: "\"id\"").count == 2, "\(devices)")
                #expect(try UbiquityAccount.current(home: home) == account)
                let app = UbiquityConfiguration(identifier: "TEAM.app", home: home)
                let store = try UbiquitousKeyValueStore(configuration: app)
                defer { store.close() }
                store.set("a value", forKey: "k")
                try await store.synchronizeNow()
                let status = try await stage.succeed(
                    "status", "--home", home, "--store", "TEAM.app")
                #expect(status.contains("connected"), "\(status)")
            }
        }

        private func status(of credential: String, at server: ServerProcess) async throws -> Int {
            try await RawAnswer.to(
                "GET", "\(server.url)/v1/account",
                headers: [("Authorization", "Bearer \(credential)")]
            ).status
        }

        @Test func `a sign-in that fails says why, and leaves the present one as it is`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let account = try UbiquityAccount.current(home: home)
                func code(of attempt: String) async -> UbiquityError.Code? {
                    let error = await #expect(throws: UbiquityError.self) {
                        try await UbiquityAccount.signIn(
                            server: server.url, code: attempt, home: home)
                    }
                    return error?.code
                }
                #expect(await code(of: "AAAA-BBBB-CCCC") == .notSignedIn)
                try await server.stop()
                #expect(await code(of: "AAAA-BBBB-CCCC") == .unreachable)
                #expect(try UbiquityAccount.current(home: home) == account)
            }
        }

        @Test func `signed out, an app goes on with its values, and sends later what it wrote`()
            async throws
        {
            try await withTwoDevices { pair in
                let (a, b) = (pair.a, pair.b)
                a.store.set("before", forKey: "a")
                try await agreement(a, b) { $0.count == 1 }
                let observer = Observer(a.store)
                try await UbiquityAccount.signOut(home: a.home)
                try await until("the sign-out") { a.store.status.connection == .signedOut }
                #expect(a.texts == ["a": "before"])
                a.store.set("meanwhile", forKey: "b")
                #expect(a.store.synchronize())
                await #expect(throws: UbiquityError.self) { try await a.store.synchronizeNow() }
                let code = try await pair.server.newCode(isFirst: false)
                try await UbiquityAccount.signIn(server: pair.server.url, code: code, home: a.home)
                try await agreement(a, b) { $0.count == 2 }
                #expect(observer.all == [.init(NSUbiquitousKeyValueStoreAccountChange, [], [:])])
            }
        }

        @Test func `a sign-out that wipes sends what is unsent, and loses nothing unasked`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = ["--home", try await server.newHome("a", isFirst: true)]
                let other = ["--home", try await server.newHome("b")]
                let (store, second) = (["--store", "TEAM.app"], ["--store", "TEAM.other"])
                try await stage.succeed(["set", "sent", "1", "--local"] + store + home)
                try await stage.succeed(["sign-out", "--wipe"] + home)
                #expect(try await stage.succeed(["get", "sent"] + store + other) == "1\n")

                let again = ["--home", try await server.newHome("c")]
                try await server.stop()
                for (key, store) in [("a", store), ("b", store), ("c", second)] {
                    try await stage.succeed(["set", key, "1", "--local"] + store + again)
                }
                let wipe = ["sign-out", "--wipe", "--timeout", "5"] + again
                let unasked = try await stage.run(wipe)
                #expect(
                    unasked.status == 64
                        && unasked.errors.contains("2 keys of TEAM.app, 1 key of TEAM.other")
                        && unasked.errors.contains("give --yes"), "\(unasked)")
                let status = try await stage.succeed(["status", "--local"] + store + again)
                #expect(status.contains("2 keys wait to be sent"), "\(status)")
                #if os(Linux)
                let no = try await PseudoTerminal.run(wipe, answer: "n\n", on: stage)
                #expect(no.contains("this device stays signed in"), "\(no)")
                #endif
                try await stage.succeed(wipe + ["--yes"])
                #expect(try await stage.run(["get", "a", "--local"] + store + again).status == 1)
            }
        }

        @Test func `a sign-out that wipes takes the values from this device, and from no other`()
            async throws
        {
            try await withTwoDevices { pair in
                let (a, b) = (pair.a, pair.b)
                a.store.set("a secret", forKey: "a")
                try await agreement(a, b) { $0.count == 1 }
                let observer = Observer(a.store)
                let answer = try await pair.stage.succeed(
                    "sign-out", "--wipe", "--json", "--home", a.home)
                #expect(answer.contains("\"revoked\":true"))
                try await until("the news") { !observer.all.isEmpty }
                #expect(
                    observer.all == [.init(NSUbiquitousKeyValueStoreAccountChange, ["a"], [:])])
                #expect(a.store.object(forKey: "a") == nil)
                try await until("the end of the files") {
                    !TemporaryFolder.contains("a secret", in: a.home)
                }
                #expect(b.texts == ["a": "a secret"])
                // What is written from now on is nobody's, and not for the account that left.
                a.store.set("after", forKey: "b")
                #expect(a.store.synchronize())
                try await b.store.synchronizeNow()
                #expect(b.texts == ["a": "a secret"])
            }
        }
    }
}
