// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import GRDB
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

extension AccountSuites {
    /// Requests that began before a device lost its rights, and continue afterwards.
    @Suite struct RevocationTests {
        /// Sends the half of a push.
        private func begin(
            _ body: String, by device: RunningDevice, metrics server: RunningServer
        ) async throws -> RawConnection {
            let connection = try await RawConnection.open(server.port)
            let half = body.prefix(body.utf8.count / 2)
            await connection.send(
                "POST /v1/stores/notes/changes HTTP/1.1\r\nHost: a\r\n"
                    + "Authorization: Bearer \(device.credential)\r\n"
                    + "Content-Type: application/json\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n" + half)
            try await until("half of the body") {
                try await server.metrics().contains("ubiquity_body_bytes \(half.utf8.count)\n")
            }
            return connection
        }

        private var body: String {
            get throws {
                var push = WirePush()
                var transaction = WireTransaction()
                transaction.writes = [.write("a", "late")]
                push.transactions = [transaction]
                return String(decoding: WireFormat.json.encode(push), as: UTF8.self)
            }
        }

        private func expectNothing(of device: RunningDevice) async throws {
            #expect(try await device.pull().message(WireChanges.self).records.isEmpty)
        }

        @Test func `a push that was begun before its device was revoked stores nothing`()
            async throws
        {
            try await withServer({ $0.metricsPort = 0 }) { server in
                let first = try await server.newDevice()
                let second = try await server.furtherDevice()
                let body = try body
                let connection = try await begin(body, by: second, metrics: server)
                let revoked = try await server.send(
                    "DELETE", "/v1/devices/\(second.id)", credential: first.credential)
                #expect(revoked.status == 204)
                await connection.send(String(body.dropFirst(body.utf8.count / 2)))
                let answer = try await connection.receive("credential-invalid")
                #expect(answer.hasPrefix("HTTP/1.1 401 "))
                try await expectNothing(of: first)
            }
        }

        @Test func `streams of what a confined device has added end with it, and no others`()
            async throws
        {
            try await withServer { server in
                let first = try await server.newDevice()
                let app = try await server.furtherDevice(stores: ["notes"])
                let code = try await server.send(
                    "POST", "/v1/codes", credential: app.credential, WireNewCode()
                ).message(WireNewAccountAnswer.self).code
                let added = try await server.signIn(code: code).message(WireSignInAnswer.self)
                let child = RunningDevice(
                    server: server, id: added.device, account: added.account,
                    credential: added.credential)
                #expect(added.stores == ["notes"])
                let other = try await server.furtherDevice(stores: ["notes"])
                var (own, stream) = (try await server.listen(other), try await server.listen(child))
                for _ in ["changes", "ready"] {
                    _ = try await (own.nextEvent(), stream.nextEvent())
                }
                let revoked = try await server.send(
                    "DELETE", "/v1/devices/\(app.id)", credential: first.credential)
                #expect(revoked.status == 204)
                #expect(try await stream.nextEvent() == nil)
                #expect(try await child.pull().problem.code == "credential-invalid")
                try await first.set("a", "1")
                #expect(try await own.nextEvent()?.keys == ["a"])
            }
        }

        @Test func `a push that was begun before its credential expired stores nothing`()
            async throws
        {
            let clock = TestClock()
            try await withServer({
                $0.metricsPort = 0
                $0.clock = clock.clock
            }) { server in
                let first = try await server.newDevice()
                let second = try await server.furtherDevice(seconds: 60)
                let body = try body
                let connection = try await begin(body, by: second, metrics: server)
                clock.advance(seconds: 61)
                await connection.send(String(body.dropFirst(body.utf8.count / 2)))
                let answer = try await connection.receive("credential-expired")
                #expect(answer.hasPrefix("HTTP/1.1 401 "))
                try await expectNothing(of: first)
            }
        }

        @Test func `a push that was begun before its app was removed stores nothing`() async throws
        {
            try await withServer({
                $0.metricsPort = 0
                $0.apps = .registered
            }) { server in
                let device = try await server.newDevice()
                func app(_ method: String) async throws {
                    let answer = try await server.send(
                        method, "/v1/apps/notes", credential: server.operatorCredential)
                    #expect(answer.status == 204)
                }
                try await app("PUT")
                let body = try body
                let connection = try await begin(body, by: device, metrics: server)
                try await app("DELETE")
                await connection.send(String(body.dropFirst(body.utf8.count / 2)))
                try await connection.receive("app-not-registered")
                try await app("PUT")
                try await expectNothing(of: device)
            }
        }

        /// The server still knows the device's credential when another node, or here another program,
        /// signs it out.
        @Test(arguments: ["DELETE /v1/account", "DELETE /v1/devices/", "PATCH /v1/devices/"])
        func `an act of a device that was signed out meanwhile is not done`(
            act: String
        ) async throws {
            try await withServer { server in
                let owner = try await server.newDevice()
                let lost = try await server.furtherDevice()
                #expect(try await lost.pull().status == 200)
                let database = try DatabaseQueue(
                    path: server.folder.file("data/ubiquity.sqlite"))
                let id = Int64(bitPattern: try #require(UInt64(lost.id, radix: 16)))
                try await database.write { db in
                    try db.execute(sql: "DELETE FROM device WHERE id = ?", arguments: [id])
                }
                try database.close()
                let words = act.split(separator: " ").map(String.init)
                let path = words[1].hasSuffix("/") ? words[1] + owner.id : words[1]
                var rename = WireRename()
                rename.name = "mine"
                let answer =
                    words[0] == "PATCH"
                    ? try await server.send(words[0], path, credential: lost.credential, rename)
                    : try await server.send(words[0], path, credential: lost.credential)
                #expect(answer.status == 401)
                #expect(try answer.problem.code == "credential-invalid")
                let left = try await owner.get("/v1/devices").message(WireDeviceList.self)
                #expect(left.devices.map(\.id) == [owner.id])
                #expect(!left.devices.contains { $0.name == "mine" })
            }
        }

        @Test func `an export ends when its device is revoked`() async throws {
            try await withServer({ $0.metricsPort = 0 }) { server in
                let first = try await server.newDevice()
                let second = try await server.furtherDevice()
                let large = String(repeating: "x", count: 1_000_000)
                for number in 0..<12 { try await first.set("a", large, store: "s\(number)") }
                let connection = try await RawConnection.open(server.port, reads: false)
                await connection.send(
                    "GET /v1/account/export HTTP/1.1\r\nHost: a\r\n"
                        + "Authorization: Bearer \(second.credential)\r\n\r\n")
                try await until("what waits to be read") {
                    try await server.metrics().contains(/ubiquity_answer_bytes [1-9]/)
                }
                let revoked = try await server.send(
                    "DELETE", "/v1/devices/\(second.id)", credential: first.credential)
                #expect(revoked.status == 204)
                try await first.set("later", "written-after-it", store: "s9")
                try await connection.readOn()
                let received = try await connection.end()
                #expect(received.hasPrefix("HTTP/1.1 200 "))
                #expect(!received.contains("written-after-it"))
            }
        }
    }
}
