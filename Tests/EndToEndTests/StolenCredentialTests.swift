// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    /// A device of a sealed account is stolen, or somebody signs one in, that does not have its key. The
    /// server is honest: it takes what it cannot open.
    @Suite struct StolenCredentialTests {
        private static let store = ["--store", Device.identifier]

        private func values(_ home: String, _ stage: Stage) async throws -> [String: String] {
            let json = try await stage.succeed(["list", "--json", "--home", home] + Self.store)
            return try JSONDecoder().decode([String: String].self, from: Data(json.utf8))
        }

        private func unlock(_ home: String, with other: String) async throws {
            let code = try await UbiquityAccount.unlockCode(home: home)
            try await UbiquityAccount.handOver(code: code, home: other)
            try await UbiquityAccount.unlock(code: code, home: home)
        }

        /// Pushes in the name of a device without the key, as no client of ours would.
        private func push(_ contents: [(String, Content)], by home: String) async throws {
            let account = try #require(try DeviceHome(path: home).load().signedIn)
            let generation = try await AccountClient.sealing(account).generation
            let now = Int64(Date().timeIntervalSince1970 * 1_000)
            let writes = try contents.map { name, content in
                Record(
                    key: try Key(name), content: content,
                    stamp: Stamp(
                        HybridTimestamp(milliseconds: now),
                        try #require(DeviceID(account.device)), digest: 5))
            }
            var push = Push([try Transaction(writes)])
            push.generation = generation
            let link = HTTPTransport(try StoreIdentifier(Device.identifier), of: account)
            for result in try await link.push(push, within: IntakeLimits(nil)).results {
                guard case .committed = result else { throw Trouble("\(result)") }
            }
        }

        private func junk(_ home: String) async throws -> Content {
            let account = try #require(try DeviceHome(path: home).load().signedIn)
            return .value(
                .sealed(
                    SealedBox(
                        generation: try await AccountClient.sealing(account).generation,
                        bytes: [1] + [UInt8].random(48))))
        }

        @Test func `it can write and remove, and a rotation tells of it and loses nothing`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let all = ["a": "1", "b": "2", "c": "3", "d": "4"]
                for (key, value) in all {
                    try await stage.succeed(["set", key, value, "--home", laptop] + Self.store)
                }
                let (on, _) = try await stage.confirming(
                    "encryption", "on", "--yes", "--home", laptop)
                #expect(on.status == 0, "\(on.errors)")
                let phone = stage.path("phone")
                try await UbiquityAccount.signIn(
                    code: try await UbiquityAccount.pair(home: laptop).wholeCode, home: phone)
                // Written by the phone, and not seen by the laptop before it is overwritten.
                #expect(try await values(phone, stage) == all)
                try await stage.succeed(["set", "a", "newer", "--home", phone] + Self.store)
                let thief = try await server.newHome("thief")
                let id = try #require(try DeviceHome(path: thief).load().signedIn).device
                let box = try await junk(thief)
                try await push(["a", "b", "c"].map { ($0, box) }, by: thief)
                try await push([("d", .deleted)], by: thief)
                try await stage.succeed("device", "revoke", "thief", "--home", laptop)

                // It asks, and changes nothing.
                let asked = try await stage.run("encryption", "rotate", "--home", laptop)
                #expect(asked.status == 64)
                #expect(asked.errors.contains("\"a\", \"b\", \"c\" of"), "\(asked.errors)")
                #expect(asked.errors.contains("overwritten"), "\(asked.errors)")
                #expect(asked.errors.contains("signed out now (\(id.prefix(8)))"))
                let line = try #require(
                    asked.errors.firstMatch(of: /ubiquity (?<words>rewind .+ --keys d)\n/),
                    "\(asked.errors)")
                try await stage.succeed(
                    line.words.split(separator: " ").map(String.init)
                        + ["--yes", "--home", laptop])

                let (rotated, _) = try await stage.confirming(
                    "encryption", "rotate", "--yes", "--home", laptop)
                #expect(rotated.status == 0, "\(rotated.errors)")
                #expect(rotated.errors.contains("overwritten"))
                #expect(!rotated.errors.contains("rewind"), "\(rotated.errors)")
                var kept = all
                kept["a"] = "newer"
                #expect(try await values(laptop, stage) == kept)
                try await unlock(phone, with: laptop)
                #expect(try await values(phone, stage) == kept)
                let fresh = stage.path("fresh")
                try await UbiquityAccount.signIn(
                    code: try await UbiquityAccount.pair(home: laptop).wholeCode, home: fresh)
                #expect(try await values(fresh, stage) == kept)
            }
        }

        @Test func `what no device has is named, and only a person removes it`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await stage.succeed(["set", "a", "1", "--home", laptop] + Self.store)
                _ = try await stage.confirming("encryption", "on", "--yes", "--home", laptop)
                let thief = try await server.newHome("thief")
                let box = try await junk(thief)
                try await push([("planted", box)], by: thief)
                let before = try DeviceHome(path: laptop).load()
                let refused = try await stage.run(
                    "encryption", "rotate", "--yes", "--home", laptop)
                complains(refused, 77, "such as that of \"planted\"")
                #expect(try DeviceHome(path: laptop).load() == before)
                try await stage.succeed(["set", "a", "2", "--home", laptop] + Self.store)
                #expect(try await values(laptop, stage) == ["a": "2"])
                #if os(Linux)
                let isTyped = Mutex(false)
                let shown = try await PseudoTerminal.run(
                    ["encryption", "rotate", "--yes", "--home", laptop], answer: "y\n", on: stage
                ) { text, terminal in
                    guard text.contains("Type it here:"),
                        let key = text.firstMatch(of: /(?:[0-9A-Z]{4}-){8}[0-9A-Z]{4}/)?.output,
                        isTyped.withLock({ isTyped in
                            defer { isTyped = true }
                            return !isTyped
                        })
                    else { return }
                    terminal.type("\(key)\n")
                }
                #expect(shown.contains("Remove them for good?"), "\(shown)")
                #expect(shown.contains("and so are all of its stores"), "\(shown)")
                #expect(try await values(laptop, stage) == ["a": "2"])
                #endif
            }
        }

        @Test func `a server that was restored from before a rotation gets the key back`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let phone = try await server.newHome("phone")
                try await stage.succeed(["set", "a", "1", "--home", laptop] + Self.store)
                // From before the account was sealed, and from before a rotation.
                for command in ["on", "rotate"] {
                    let backup = stage.path("backup-\(command)")
                    try await server.stop()
                    try FileManager.default.copyItem(atPath: server.data, toPath: backup)
                    try await server.start()
                    _ = try await stage.confirming("encryption", command, "--yes", "--home", laptop)
                    try await stage.succeed(["set", "a", command, "--home", laptop] + Self.store)
                    try await server.stop()
                    try FileManager.default.removeItem(atPath: server.data)
                    try FileManager.default.copyItem(atPath: backup, toPath: server.data)
                    try await server.start()
                    let status = try await stage.run("encryption", "status", "--home", laptop)
                    complains(status, 77, "`ubiquity encryption on` gives it the key back")
                    let (given, key) = try await stage.confirming(
                        "encryption", "on", "--yes", "--home", laptop)
                    #expect(given.status == 0, "\(given.errors)")
                    try await stage.succeed(["sync", "--home", laptop] + Self.store)
                    #expect(try await values(laptop, stage) == ["a": command])
                    try await UbiquityAccount.unlock(code: key, home: phone)
                    #expect(try await values(phone, stage) == ["a": command])
                }
            }
        }
    }
}
