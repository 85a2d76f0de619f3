// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

extension AccountSuites {
    /// Tests that erased content leaves no trace in the data folder.
    @Suite struct ErasingTests {
        /// In all that is ada's: names of account, device and store, keys, values, parts.
        private static let secret = "AdasOwnWords"
        private static let store = "TEAM.AdasOwnWords.notes"
        private static let account = "ada AdasOwnWords"
        private static let accountInPath = "ada%20AdasOwnWords"

        private func fill(_ device: RunningDevice, store: String, words: String) async throws {
            // Of many sizes, and in an order that makes pages of the file split and merge.
            for round in 0..<4 {
                for batch in 0..<8 {
                    let writes = (0..<25).map { number in
                        let key = "key \(words) \((batch * 25 + number) * 37 % 200)"
                        let count = [1, 3, 20, 90, 500][(number + round) % 5]
                        let isDeletion = round == 2 && number.isMultiple(of: 3)
                        let value = String(repeating: "\(words) \(round) ", count: count)
                        return WireRecord.write(
                            key, isDeletion ? nil : PropertyListValue.string(value))
                    }
                    #expect(try await device.push(writes, store: store, .protobuf).status == 200)
                }
            }
            var part = WireRecord.write("key \(words) with parts", "\(words) value")
            part.part = "x\(words) part"
            #expect(try await device.push([part], store: store).status == 200)
        }

        /// The files of the folder that have the text in them.
        private func files(with text: String, in folder: TemporaryFolder) throws -> [String] {
            let data = folder.file("data")
            return try folder.dataFiles().filter { name in
                let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(data)/\(name)"))
                return bytes.range(of: Data(text.utf8)) != nil
            }
        }

        private func expectGone(from folder: TemporaryFolder) async throws {
            try await until("a folder without the secret") {
                try files(with: Self.secret, in: folder).isEmpty
            }
        }

        private func makeAda(_ server: RunningServer) async throws -> RunningDevice {
            let ada = try await server.newDevice(account: Self.account)
            var rename = WireRename()
            rename.name = "laptop \(Self.secret)"
            _ = try await server.send(
                "PATCH", "/v1/devices/\(ada.id)", credential: ada.credential, rename)
            return ada
        }

        @Test func `an account that is erased while the server runs leaves nothing in its files`()
            async throws
        {
            let folder = try TemporaryFolder()
            let configure = { (settings: inout ServerSettings) in
                settings.allowance = .init(burst: 10_000)
            }
            try await withServer(in: folder, configure) { server in
                let bob = try await server.newDevice(account: "bob")
                let ada = try await makeAda(server)
                try await fill(bob, store: "notes", words: "BobsOwnWords")
                try await fill(ada, store: Self.store, words: Self.secret)
                try await fill(bob, store: "more", words: "BobsOwnWords")
                // A code that waits, confined, has the store's name as well.
                _ = try await server.furtherDevice(
                    account: Self.accountInPath, stores: [Self.store])
                var stream = try await server.listen(ada, store: Self.store)
                _ = try await stream.nextEvent()
                #expect(try !files(with: Self.secret, in: folder).isEmpty)
                let before = try await bob.pull().body.count
                let other = try DatabaseQueue(path: folder.file("data/ubiquity.sqlite"))
                _ = try await other.read {
                    try Int.fetchOne($0, sql: "SELECT count(*) FROM record")
                }

                let answer = try await server.send(
                    "DELETE", "/v1/account", credential: ada.credential)
                #expect(answer.status == 204)
                while try await stream.next() != nil {}
                #expect(try await ada.pull(store: Self.store).status == 401)
                try await expectGone(from: folder)

                #expect(try await bob.pull().body.count == before)
                try await bob.set("after", "x")
                #expect(try !files(with: "BobsOwnWords", in: folder).isEmpty)
                // The name is free again, and the new account empty.
                let again = try await server.newDevice(account: Self.account)
                let stores = try await again.get("/v1/stores").message(WireStoreList.self).stores
                #expect(stores.isEmpty)
                try other.close()
            }
        }

        @Test func `a reader of an older state delays the end of the traces, and nothing else`()
            async throws
        {
            let folder = try TemporaryFolder()
            try await withServer(in: folder) { server in
                let bob = try await server.newDevice(account: "bob")
                let ada = try await makeAda(server)
                try await ada.set("key \(Self.secret)", Self.secret, store: Self.store)
                let reading = try ReadingTransaction(folder.file("data/ubiquity.sqlite"))
                #expect(
                    try await server.send(
                        "DELETE", "/v1/accounts/\(Self.accountInPath)",
                        credential: server.operatorCredential
                    ).status == 204)
                for number in 0..<20 { try await bob.set("key", "\(number)") }
                #expect(try !files(with: Self.secret, in: folder).isEmpty)
                try reading.end()
                try await expectGone(from: folder)
                try await bob.set("key", "last")
            }
        }

        @Test func `an account erased through the data folder is gone for the running server`()
            async throws
        {
            let folder = try TemporaryFolder()
            try await withServer(in: folder) { server in
                let bob = try await server.newDevice(account: "bob")
                let ada = try await makeAda(server)
                try await ada.set("key \(Self.secret)", Self.secret, store: Self.store)
                var stream = try await server.listen(ada, store: Self.store)
                _ = try await stream.nextEvent()
                let erasing = try await server.sendInFolder(
                    "DELETE", "/v1/accounts/\(Self.accountInPath)")
                #expect(erasing.status == 204)
                let late = try await ada.push(
                    [.write("late \(Self.secret)", Self.secret)], store: Self.store)
                #expect(late.status == 401)
                while try await stream.next() != nil {}
                try await expectGone(from: folder)
                // A new store gets the number that the erased one had.
                try await bob.set("a", "1", store: "bobs")
                #expect(
                    try await bob.pull(store: "bobs").message(WireChanges.self).records.count == 1)
            }
        }
    }
}
