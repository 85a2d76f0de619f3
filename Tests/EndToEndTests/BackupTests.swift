// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    @Suite struct BackupTests {
        @Test func `after a restore the devices notice, and nothing is lost`() async throws {
            try await heal { pair, copy in
                try await pair.stage.succeed("backup", "--data", pair.server.data, "--output", copy)
            } putBack: { pair, copy in
                let restore = ["restore", copy, "--data", pair.server.data]
                let early = try await pair.stage.run(restore)
                #expect(early.status == 69)
                #expect(early.errors.contains("server is running"))
                try await pair.server.stop()
                #expect(try await pair.stage.run(restore).status == 73)
                try await pair.stage.succeed(restore + ["--replace"])
            }
        }

        @Test func `a server restored from an older copy heals from its devices`() async throws {
            try await heal { pair, copy in
                try await pair.server.stop()
                try FileManager.default.copyItem(atPath: pair.server.data, toPath: copy)
                try await pair.server.start()
            } putBack: { pair, copy in
                try await pair.server.stop()
                try FileManager.default.removeItem(atPath: pair.server.data)
                try FileManager.default.moveItem(atPath: copy, toPath: pair.server.data)
            }
        }

        /// Checks that the server has everything again after it was put back to an older copy.
        /// - Parameters:
        ///   - makeCopy: Copies the data of the running server to that path.
        ///   - putBack: Stops the server and puts the copy in place of its data.
        private func heal(
            _ makeCopy: (TwoDevices, String) async throws -> Void,
            putBack: (TwoDevices, String) async throws -> Void
        ) async throws {
            try await withTwoDevices { pair in
                let (a, b) = (pair.a, pair.b)
                let homeC = try await pair.server.newHome("c")
                a.store.set("kept", forKey: "kept")
                a.store.set("old", forKey: "changed")
                a.store.set("old", forKey: "deleted")
                try await agreement(a, b) { $0.count == 3 }

                let copy = pair.stage.path("copy")
                try await makeCopy(pair, copy)
                a.store.set("new", forKey: "changed")
                b.store.removeObject(forKey: "deleted")
                b.store.set("new", forKey: "added")
                let healed = ["kept": "kept", "changed": "new", "added": "new"]
                try await until("the news on both") {
                    [a, b].allSatisfy { $0.texts == healed && $0.isSettled }
                }

                try await putBack(pair, copy)
                try await pair.server.start()
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
                let file = stage.path("export.json")
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
                let elsewhere = stage.path("operator.json")
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

        #if os(Linux)
        @Test func `the doctor and status name the proxy, without its password`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = try await server.newHome("a", isFirst: true)
                let file = home + "/account.json"
                let account = try String(contentsOfFile: file, encoding: .utf8)
                let elsewhere = account.replacing("127.0.0.1", with: "ubiquity.invalid")
                try elsewhere.write(toFile: file, atomically: false, encoding: .utf8)
                for command in ["doctor", "status"] {
                    let run = try await stage.run(
                        [command, "--home", home],
                        environment: ["http_proxy": "http://ada:secret@127.0.0.1:1"])
                    let words = "http://127.0.0.1:1" + (command == "doctor" ? ", which" : "\n")
                    #expect(run.output.contains(words), "\(run)")
                    #expect(!(run.output + run.errors).contains("secret"), "\(run)")
                    #expect(run.output.contains("the proxy does not answer"), "\(run)")
                    // The proxy looks the name up.
                    #expect(!run.output.contains("has no address"), "\(run)")
                }
            }
        }
        #endif
    }
}
