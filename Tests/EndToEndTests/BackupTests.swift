// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    @Suite struct BackupTests {
        @Test func `after a restore the devices notice, and nothing is lost`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = try Device(home: await server.newHome("a", isFirst: true))
                let b = try Device(home: await server.newHome("b"))
                let homeC = try await server.newHome("c")
                defer {
                    a.close()
                    b.close()
                }
                a.store.set("kept", forKey: "kept")
                a.store.set("old", forKey: "changed")
                a.store.set("old", forKey: "deleted")
                try await agreement(a, b) { $0.count == 3 }

                let copy = stage.path("copy")
                try await stage.succeed("backup", "--data", server.data, "--output", copy)
                a.store.set("new", forKey: "changed")
                b.store.removeObject(forKey: "deleted")
                b.store.set("new", forKey: "added")
                let healed = ["kept": "kept", "changed": "new", "added": "new"]
                try await until("the news on both") {
                    [a, b].allSatisfy { $0.texts == healed && $0.isSettled }
                }

                let early = try await stage.run("restore", copy, "--data", server.data)
                #expect(early.status == 69)
                #expect(early.errors.contains("server is running"))
                try await server.stop()
                let unasked = try await stage.run("restore", copy, "--data", server.data)
                #expect(unasked.status == 73)
                try await stage.succeed("restore", copy, "--data", server.data, "--replace")
                try await server.start()
                let c = try Device(home: homeC)
                defer { c.close() }
                try await until("the healing") {
                    [a, b, c].allSatisfy { $0.texts == healed && $0.isSettled }
                }
            }
        }

        @Test func `what one account exports another imports`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let ada = try await server.newHome("ada", isFirst: true)
                let bob = try await server.newHome("bob", isFirst: true, account: "bob")
                for store in ["TEAM.one", "TEAM.two"] {
                    try await stage.succeed(
                        "set", "greeting", "hello from \(store)", "--store", store, "--home", ada)
                }
                let file = stage.path("export.tar")
                try await stage.succeed(
                    "account", "export", "--output", file, "--home", ada)
                let again = try await stage.run(
                    "account", "export", "--output", file, "--home", ada)
                #expect(again.status == 73)
                #expect(again.errors.contains("--force"))
                try await stage.succeed(
                    "set", "greeting", "mine", "--store", "TEAM.two", "--home", bob)
                let dry = try await stage.succeed("import", file, "--home", bob, "--dry-run")
                #expect(
                    dry == """
                        Would import 2 keys of the account ada into 2 stores:
                          TEAM.one: 1 key
                              + greeting  "hello from TEAM.one"
                          TEAM.two: 1 key
                              ~ greeting  "mine" → "hello from TEAM.two"

                        """)
                let output = try await stage.succeed("import", file, "--home", bob)
                #expect(output.contains("Imported 2 keys of the account ada into 2 stores"))
                let value = try await stage.succeed(
                    "get", "greeting", "--store", "TEAM.two", "--home", bob)
                #expect(value == "hello from TEAM.two\n")
                let repeated = try await stage.succeed("import", file, "--home", bob)
                #expect(repeated.contains("TEAM.one: 0 keys, 1 already had their value"))
                let elsewhere = stage.path("operator.tar")
                try await stage.succeed(
                    "account", "export", "bob", "--output", elsewhere, "--server", server.url,
                    "--operator-credential", server.data + "/operator-credential")
                let one = try await stage.succeed(
                    "import", elsewhere, "--home", ada, "--store", "TEAM.one")
                #expect(one.contains("0 keys of the account bob into 1 store"))
            }
        }

        @Test func `the doctor finds nothing wrong with a device and a server that work`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                try await stage.succeed("set", "a", "1", "--store", "TEAM.one", "--home", home)
                let device = try await stage.run("doctor", "--home", home)
                #expect(device.status == 0, "\(device.output)")
                #expect(device.output.contains("The server recognises this device."))
                let data = try await stage.run("doctor", "--data", server.data)
                #expect(data.status == 0, "\(data.output)")
                #expect(data.output.contains("A server is running on the folder."))
                try await server.stop()
                let alone = try await stage.run("doctor", "--home", home, "--json")
                #expect(alone.status == 1)
                #expect(alone.output.contains(#"{"check":"connection","verdict":"problem""#))
            }
        }
    }
}
