// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

extension AccountSuites {
    /// The content of the audit log, and that nobody can flood it.
    @Suite struct AuditTests {
        private func entries(
            _ server: RunningServer, of action: String
        ) async throws -> [WireAuditTrail.Entry] {
            try await server.send(
                "GET", "/v1/audit?limit=1000", credential: server.operatorCredential
            ).message(WireAuditTrail.self).entries.filter { $0.deed == action }
        }

        @Test func `a confined device that renames itself without end is one entry, and is slowed`()
            async throws
        {
            try await withServer { server in
                _ = try await server.newDevice()
                let device = try await server.furtherDevice(stores: ["notes"])
                var statuses: [Int: Int] = [:]
                for number in 0..<60 {
                    var rename = WireRename()
                    rename.name = "name \(number)"
                    let status = try await server.send(
                        "PATCH", "/v1/devices/\(device.id)", credential: device.credential, rename
                    ).status
                    statuses[status, default: 0] += 1
                }
                let renames = try await entries(server, of: "device-renamed")
                #expect(renames.count == 1)
                #expect(renames.first?.count == UInt64(statuses[200] ?? 0))
                #expect((renames.first?.count ?? 0) < 60)
                #expect(statuses[429] ?? 0 > 0)
                #expect(try await entries(server, of: "device-signed-in").count == 2)
            }
        }

        @Test func `failed sign-ins are an entry a minute of each address`() async throws {
            let clock = TestClock(uptime: ServerClock.system.uptime)
            let folder = try TemporaryFolder()
            let configure = { (settings: inout ServerSettings) in settings.clock = clock.clock }
            try await withServer(in: folder, configure) { server in
                for _ in 0..<20 {
                    #expect(try await server.signIn(code: "AAAA-AAAA-AAAA").status == 401)
                }
                #expect(try await entries(server, of: "sign-in-failed").isEmpty)
                clock.advance(seconds: 60)
                try await until("the entry") {
                    try await !entries(server, of: "sign-in-failed").isEmpty
                }
                #expect(try await server.signIn(code: "AAAA-AAAA-AAAA").status == 401)
            }
            try await withServer(in: folder, configure) { server in
                let failed = try await entries(server, of: "sign-in-failed")
                #expect(failed.map(\.count) == [1, 20])
                #expect(failed.allSatisfy { $0.detail == "127.0.0.1" && $0.actor == "stranger" })
            }
        }

        @Test func `addresses without end are so many entries a minute`() {
            let failures = FailedSignIns()
            for number in 0..<5_000 { failures.count("address \(number)", now: Int64(number)) }
            failures.count("address 7", now: 6_000)
            #expect(failures.take(now: 59_999).isEmpty)
            let entries = failures.take(now: nil)
            #expect(entries.count == 1_025)
            #expect(entries.reduce(0) { $0 + $1.count } == 5_001)
            #expect(entries.first { $0.event.detail == "address 7" }?.count == 2)
            #expect(entries.first { $0.event.detail == nil }?.count == 3_976)
            #expect(failures.take(now: nil).isEmpty)
        }

        @Test func `an export is in the audit log, whoever made it`() async throws {
            let folder = try TemporaryFolder()
            try await withServer(in: folder) { server in
                let ada = try await server.newDevice()
                // 503 until the previous one has released its place.
                for _ in 0..<2 {
                    try await until("an export") {
                        try await ada.get("/v1/account/export").status == 200
                    }
                }
                let credential = try server.operatorCredential
                for method in ["GET", "HEAD"] {
                    try await until("an export") {
                        try await server.send(
                            method, "/v1/accounts/ada/export", credential: credential
                        ).status == 200
                    }
                }
                try await until("an export") {
                    try await server.sendInFolder("GET", "/v1/accounts/ada/export").status == 200
                }
                let exports = try await entries(server, of: "account-exported")
                #expect(
                    exports.map(\.actor) == [
                        "operator-locally", "operator-by-credential", "device",
                    ])
                #expect(exports.map(\.count) == [1, 1, 2])
                #expect(exports.allSatisfy { $0.account == ada.account })
                #expect(exports.last?.actorDevice == ada.id)
            }
        }

        @Test func `limits that have changed since the last start are in the audit log`()
            async throws
        {
            let folder = try TemporaryFolder()
            try await withServer(in: folder) { server in
                let changed = try await entries(server, of: "limit-changed")
                #expect(changed.isEmpty)
            }
            let configure = { (settings: inout ServerSettings) in
                settings.limits.keysMax = 12
                settings.signInAllowance.burst = 3
            }
            try await withServer(in: folder, configure) { server in
                let changed = try await entries(server, of: "limit-changed")
                #expect(
                    changed.map(\.detail) == [
                        "signInAllowance from 60 and 1.0 a second to 3 and 1.0 a second",
                        "keysMax from 1024 to 12",
                    ])
                #expect(changed.allSatisfy { $0.actor == "operator-locally" })
            }
        }

        @Test func `an operator's credential that replaces another is in the audit log`()
            async throws
        {
            let folder = try TemporaryFolder()
            try await withServer(in: folder) { server in
                let none = try await entries(server, of: "operator-credential-replaced")
                #expect(none.isEmpty)
            }
            let file = DataFolder(path: folder.file("data")).operatorCredentialPath
            let draft = try AtomicFile(path: file, replaces: true)
            try draft.write(Array("ubo_another-credential-of-the-operator".utf8))
            try draft.finish()
            for _ in 1...2 {
                try await withServer(in: folder) { server in
                    let replaced = try await entries(server, of: "operator-credential-replaced")
                    #expect(replaced.map(\.actor) == ["operator-locally"])
                    #expect(replaced.map(\.count) == [1])
                }
            }
        }

        @Test func `a restore is in the audit log of what was restored`() async throws {
            let folder = try TemporaryFolder()
            let data = folder.file("data")
            try await withServer(in: folder) { server in _ = try await server.newDevice() }
            let copy = try Backup(
                of: data, to: folder.file("copy"), replaces: true, secondsMax: 60
            ).path
            _ = try Restoration(of: copy, into: data, replaces: true, signsOutDevices: false)
            try await withServer(in: folder) { server in
                let restores = try await entries(server, of: "database-restored")
                #expect(restores.map(\.actor) == ["operator-locally"])
                #expect(try await entries(server, of: "device-signed-in").count == 1)
            }
        }
    }
}
