// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

extension AccountSuites {
    /// Tests what a server removes by itself.
    @Suite struct TidyingTests {
        private func audit(_ server: RunningServer) async throws -> [WireAuditTrail.Entry] {
            try await server.send(
                "GET", "/v1/audit", credential: server.operatorCredential
            ).message(WireAuditTrail.self).entries
        }

        private func devices(_ server: RunningServer) async throws -> [String] {
            try await server.send(
                "GET", "/v1/accounts/ada/devices", credential: server.operatorCredential
            ).message(WireDeviceList.self).devices.map(\.id)
        }

        @Test
        func
            `a device whose credential expired a month ago is removed once the clock has run evenly`()
            async throws
        {
            let folder = try TemporaryFolder()
            let clock = TestClock(uptime: ServerClock.system.uptime)
            let configure = { (settings: inout ServerSettings) in settings.clock = clock.clock }
            var expected: [String] = []
            try await withServer(in: folder, configure) { server in
                let owner = try await server.newDevice()
                let short = try await server.furtherDevice(seconds: 60)
                expected = [owner.id]
                #expect(try await devices(server).count == 2)
                clock.advance(seconds: 30 * 86_400)
                #expect(try await short.pull().problem.code == "credential-expired")
            }
            clock.advance(seconds: 61)
            try await withServer(
                in: folder,
                {
                    configure(&$0)
                    $0.constants.auditEntriesMax = 3
                }
            ) { server in
                // The first round is over, and the clock may be wrong.
                try await until("a log of three entries") { try await audit(server).count == 3 }
                #expect(try await devices(server).count == 2)
                clock.pass(seconds: 3_600)
                try await until("the end of the other device") {
                    try await devices(server) == expected
                }
                let last = try #require(try await audit(server).first)
                #expect(last.deed == "device-removed" && last.actor == "housekeeping")
            }
        }

        @Test func `an audit log that is too long loses its oldest entries`() async throws {
            let folder = try TemporaryFolder()
            var newest: [UInt64] = []
            try await withServer(in: folder) { server in
                for number in 0..<5 { _ = try await server.invite("account\(number)") }
                newest = try await audit(server).prefix(2).map(\.number)
                #expect(try await audit(server).count == 10)
            }
            try await withServer(in: folder, { $0.constants.auditEntriesMax = 2 }) { server in
                try await until("a log of two entries") { try await audit(server).count == 2 }
                #expect(try await audit(server).map(\.number) == newest)
            }
        }
    }
}
