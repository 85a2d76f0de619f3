// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    /// Accounts, devices and apps by the command, in both ways that an operator has, and by a
    /// person's own sign-in.
    @Suite struct AccountCommandTests {
        private typealias Ways = [[String]]

        /// The options by which an operator acts.
        private func ways(_ stage: Stage, _ server: ServerProcess) -> Ways {
            [
                ["--data", server.data],
                [
                    "--server", server.url, "--operator-credential",
                    server.data + "/operator-credential",
                ],
            ]
        }

        private func json(_ stage: Stage, _ arguments: [String]) async throws -> Any {
            let run = try await stage.run(arguments + ["--json"])
            guard run.status == 0 else { throw Trouble(run.errors) }
            return try JSONSerialization.jsonObject(with: Data(run.output.utf8))
        }

        private func names(_ stage: Stage, _ arguments: [String]) async throws -> [String] {
            let list = try await json(stage, arguments) as? [[String: Any]] ?? []
            return list.compactMap { $0["name"] as? String }
        }

        @Test func `a revoked device's connection ends, however it was revoked`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let owner = try await server.newHome("owner", isFirst: true)
                let ways = ways(stage, server).map { ["--account", "ada"] + $0 }
                for (number, way) in (ways + [["--home", owner]]).enumerated() {
                    let name = "lost\(number)"
                    let lost = try Device(home: await server.newHome(name))
                    defer { lost.close() }
                    try await until("the connection") { lost.isConnected }
                    let run = try await stage.run(["device", "revoke", name] + way)
                    #expect(run.status == 0, "\(run.errors)")
                    try await until("the end") { !lost.isConnected }
                    try await until("the refusal") {
                        lost.store.status.connection == .unauthorized
                    }
                }
                let left = try await names(stage, ["device", "list", "--home", owner])
                #expect(left == ["owner"])
            }
        }

        @Test func `an operator's commands do the same in the folder and from afar`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                for (number, way) in ways(stage, server).enumerated() {
                    let name = "ada\(number)"
                    try await stage.run(["account", "create", name] + way).expectSuccess()
                    _ = try await server.newHome("device\(number)", account: name)
                    try await stage.run(
                        ["device", "rename", "device\(number)", "desk", "--account", name] + way
                    ).expectSuccess()
                    let devices = ["device", "list", "--account", name] + way
                    #expect(try await names(stage, devices) == ["desk"])
                    try await stage.run(["account", "rename", name, "eve"] + way).expectSuccess()
                    #expect(try await names(stage, ["account", "list"] + way) == ["eve"])
                    try await stage.run(["app", "register", "TEAM.app"] + way).expectSuccess()
                    let apps = try await json(stage, ["app", "list"] + way) as? [String: Any]
                    #expect((apps?["apps"] as? [Any])?.count == 1)
                    try await stage.run(["app", "remove", "TEAM.app"] + way).expectSuccess()
                    let unsure = try await stage.run(["account", "delete", "eve"] + way)
                    #expect(unsure.status == 64)
                    try await stage.run(["account", "delete", "eve", "--yes"] + way)
                        .expectSuccess()
                    #expect(try await names(stage, ["account", "list"] + way) == [])
                    let audit = try await json(stage, ["audit", "--limit", "7"] + way)
                    let deeds = (audit as? [[String: Any]] ?? []).compactMap {
                        $0["deed"] as? String
                    }
                    #expect(
                        deeds == [
                            "account-erased", "app-removed", "app-registered", "account-renamed",
                            "device-renamed", "device-signed-in", "code-made",
                        ])
                }
            }
        }

        /// From afar, and in the folder.
        @Test func `a refusal has the same status and sentence in every way`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let (folder, afar) = (ways(stage, server)[0], ways(stage, server)[1])
                try await stage.succeed("account", "create", "ada", "--data", server.data)
                try await expectRefusals(stage, afar)
                try await expectRefusals(stage, folder)
                try await server.kill()
                let killed = try await stage.run(["account", "list"] + folder)
                #expect(killed.status == 69 && killed.errors.contains("start it"), "\(killed)")
                #expect(try await stage.run(["account", "list"] + afar).status == 69)
                let code = ["account", "code", "ada", "--code-minutes", "60"]
                try await server.start()
                try await stage.run(code + folder).expectSuccess()
                try await stage.run(code + afar).expectSuccess()
                server.signal(SIGSTOP)
                let silent = try await stage.run(["account", "list"] + folder)
                server.signal(SIGCONT)
                #expect(silent.status == 69 && silent.errors.contains("restart it"), "\(silent)")
            }
        }

        private func expectRefusals(_ stage: Stage, _ way: [String]) async throws {
            let device = ["device", "revoke", "0123456789abcdef", "--account"]
            let refusals: [([String], Int32, String)] = [
                (
                    ["account", "create", "ada"], 1,
                    "the account \"ada\" already exists; `ubiquity account code ada`"
                ),
                (["account", "rename", "ada", "ada "], 65, "an account name has 1 to 128 bytes"),
                (["account", "code", "eve"], 1, "there is no account \"eve\""),
                (["account", "delete", "eve", "--yes"], 1, "there is no account \"eve\""),
                (["account", "export", "eve", "-o", stage.path("eve")], 1, "no account \"eve\""),
                (["device", "list", "--account", "eve"], 1, "there is no account \"eve\""),
                (["device", "revoke", "d", "--account", "ada"], 1, "there is no device \"d\""),
                (device + ["ada"], 1, "the account \"ada\" has no such device"),
                (["app", "remove", "TEAM.app"], 1, "the app TEAM.app is not registered"),
            ]
            for (words, status, sentence) in refusals {
                let run = try await stage.run(words + way)
                #expect(run.status == status && run.errors.contains(sentence), "\(words) \(run)")
            }
            #expect(!FileManager.default.fileExists(atPath: stage.path("eve")))
        }

        @Test func `a person deletes their own account, and is signed out`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let other = try Device(home: await server.newHome("b"))
                defer { other.close() }
                other.store.set("x", forKey: "key")
                try await until("the sync") { other.isConnected && other.isSettled }
                #expect(try await stage.run("account", "delete", "--home", home).status == 64)
                try await stage.succeed("account", "delete", "--yes", "--home", home)
                #expect(try UbiquityAccount.current(home: home) == nil)
                try await until("the refusal") {
                    other.store.status.connection == .unauthorized
                }
                #expect(other.texts == ["key": "x"])
                #expect(
                    try await names(stage, ["account", "list", "--data", server.data]) == [])
            }
        }

        @Test func `an app that is not registered is told so by the status, and syncs once it is`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(
                    stage, options: ["--apps", "registered"])
                let device = try Device(home: await server.newHome("a", isFirst: true))
                defer { device.close() }
                device.store.set("x", forKey: "key")
                let status = [
                    "status", "--home", device.home, "--store", Device.identifier, "--json",
                ]
                try await until("the sentence") {
                    let error = device.store.engineStatus.link.lastError ?? ""
                    return error.contains("only registered apps")
                }
                let run = try await stage.run(status)
                #expect(run.output.contains("register its identifier"))
                try await stage.succeed(
                    "app", "register", Device.identifier, "--data", server.data)
                try await until("the sync") {
                    device.store.synchronize()
                    return device.isConnected && device.isSettled
                }
            }
        }

        @Test func `a device with a confined code can access its store, and no other`() async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let owner = try Device(home: await server.newHome("owner", isFirst: true))
                defer { owner.close() }
                owner.store.set("x", forKey: "key")
                let made = try await json(
                    stage,
                    [
                        "account", "code", "ada", "--store", Device.identifier,
                        "--credential-days", "1", "--data", server.data,
                    ])
                let code = (made as? [String: Any])?["code"] as? String ?? ""
                let home = stage.path("home-app")
                try await stage.succeed(
                    "sign-in", "--server", server.url, "--code", code, "--home", home)
                let app = try Device(home: home)
                defer { app.close() }
                try await agreement(owner, app) { $0.count == 1 }
                let other = try await stage.run(
                    "sync", "--store", "TEAM.other", "--home", home)
                #expect(other.status == 77)
                #expect(other.errors.contains("confined"))
            }
        }
    }
}

extension ProgramRun {
    func expectSuccess() { #expect(status == 0, "\(errors)") }
}
