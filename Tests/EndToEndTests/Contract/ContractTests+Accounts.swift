// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore
internal import UbiquityTestWorker

/// Devices that are signed in to another account, or to none.
extension EndToEndTests.ContractTests {
    /// Vector 14.
    @Test func `another account takes over at once, and unsynced writes wait for the first one`()
        async throws
    {
        try await onStage { stage in
            // After its first push, a device has to wait: what it writes then stays unsynced.
            let server = try await ServerProcess.started(
                stage, options: ["--pushes-per-second", "0.001"])
            let adas = try Device(home: await server.newHome("ada", isFirst: true))
            let bobs = try Device(
                home: await server.newHome("bob", isFirst: true, account: "bob"))
            let shared = try Device(home: await server.newHome("shared"))
            defer { for device in [adas, bobs, shared] { device.close() } }
            bobs.store.set("bob's", forKey: "same key")
            shared.store.set("ada's", forKey: "same key")
            try await agreement(adas, shared) { $0.count == 1 }
            try await bobs.store.synchronizeNow()
            let helper = try await WorkerProcess.ready(stage, home: shared.home)

            shared.store.set("unsynced", forKey: "parked")
            #expect(shared.store.status.pendingKeys == ["parked"])
            let observer = Observer(shared.store)
            try await switchAccount(shared, to: "bob", server, stage)
            try await until("bob's value") { !observer.all.isEmpty }
            #expect(shared.store.object(forKey: "parked") == nil)
            try await until("bob's values") { shared.texts == ["same key": "bob's"] }
            try await until("the helper's news") {
                try helper.notices().contains { $0.reason == 3 }
            }
            shared.store.set("of bob, from here", forKey: "new")
            try await agreement(bobs, shared) { $0.count == 2 }
            #expect(bobs.texts == ["same key": "bob's", "new": "of bob, from here"])
            try await until("them in the helper") { try await helper.values() == bobs.texts }

            try await UbiquityAccount.signIn(
                server: server.url, code: server.newCode(isFirst: false), home: shared.home)
            try await until("the parked write elsewhere") {
                adas.texts == ["same key": "ada's", "parked": "unsynced"]
            }
            try await until("the return of both apps") {
                try await helper.values() == adas.texts && shared.texts == adas.texts
            }
            #expect(bobs.texts == ["same key": "bob's", "new": "of bob, from here"])
            let account = try Device(home: await server.newHome("bob 2", account: "bob"))
            defer { account.close() }
            try await account.store.synchronizeNow()
            #expect(account.texts == bobs.texts)

            let switches = observer.all.filter {
                $0.reason == NSUbiquitousKeyValueStoreAccountChange
            }
            #expect(
                switches.map(\.keys) == [["parked", "same key"], ["new", "parked", "same key"]])
            try await helper.end()
        }
    }

    private func switchAccount(
        _ device: Device, to account: String, _ server: ServerProcess, _ stage: Stage
    ) async throws {
        let code = try await server.newCode(isFirst: false, account: account)
        try await stage.succeed(
            "sign-in", "--replace", "--server", server.url, "--code", code, "--home", device.home)
    }

    /// Vector 16.
    @Test func `signed out, writes survive a restart and go up on sign-in`() async throws {
        try await onStage { stage in
            let server = try await ServerProcess.started(stage)
            let b = try Device(home: await server.newHome("b", isFirst: true))
            defer { b.close() }
            let home = stage.path("home-a")
            let app = try await WorkerProcess.ready(stage, home: home)
            _ = try await app.set("written", forKey: "a")
            _ = try await app.set("removed", forKey: "b")
            _ = try await app.ask("remove b")
            try await app.end()

            let again = try await WorkerProcess.ready(stage, home: home)
            #expect(try await again.values() == ["a": "written"])
            _ = try await server.newHome("a")
            try await until("the write elsewhere") { b.texts == ["a": "written"] }
            try await again.end()
        }
    }
}
