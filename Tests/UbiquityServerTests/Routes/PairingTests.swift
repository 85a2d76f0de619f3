// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

/// Devices that sign in other devices.
struct PairingTests {
    private func code(
        _ device: RunningDevice, _ body: WireNewCode = WireNewCode()
    ) async throws -> RunningServer.Answer {
        try await device.server.send("POST", "/v1/codes", credential: device.credential, body)
    }

    private func ask(
        _ server: RunningServer, stores: [String] = [], seconds: UInt64 = 0
    ) async throws -> WireNewSignInRequestAnswer {
        var body = WireNewSignInRequest()
        body.deviceName = "new phone"
        body.stores = stores
        body.credentialSeconds = seconds
        return try await server.send("POST", "/v1/sign-in-requests", body)
            .message(WireNewSignInRequestAnswer.self)
    }

    private func signIn(
        _ server: RunningServer, _ asked: WireNewSignInRequestAnswer
    ) async throws -> RunningServer.Answer {
        var body = WireSignIn()
        body.request = asked.request
        body.deviceName = "another name"
        return try await server.send("POST", "/v1/sign-in", body)
    }

    private func approve(
        _ asked: WireNewSignInRequestAnswer, by credential: String, _ server: RunningServer,
        _ body: WireApproval = WireApproval()
    ) async throws -> RunningServer.Answer {
        try await server.send(
            "POST", "/v1/sign-in-requests/\(asked.userCode)/approval", credential: credential, body)
    }

    private func audit(_ server: RunningServer) async throws -> [WireAuditTrail.Entry] {
        try await server.send("GET", "/v1/audit", credential: server.operatorCredential)
            .message(WireAuditTrail.self).entries
    }

    @Test func `a device's code signs in another device of its account, once`() async throws {
        try await withServer { server in
            let laptop = try await server.newDevice()
            let made = try await code(laptop).message(WireNewAccountAnswer.self)
            #expect(made.account == laptop.account)
            let phone = try await server.signIn(code: made.code).message(WireSignInAnswer.self)
            #expect(phone.account == laptop.account && phone.accountName == "ada")
            #expect(phone.expiresMilliseconds == 0 && phone.stores.isEmpty)
            #expect(try await server.signIn(code: made.code).problem.code == "code-invalid")
            let entry = try await audit(server).first { $0.deed == "code-made" }
            #expect(entry?.actor == "device" && entry?.actorDevice == laptop.id)
        }
    }

    @Test func `a device's code has no more rights than the device`() async throws {
        let clock = TestClock(uptime: ServerClock.system.uptime)
        try await withServer({ $0.clock = clock.clock }) { server in
            _ = try await server.newDevice()
            let app = try await server.furtherDevice(stores: ["one", "two"], seconds: 3_600)
            var more = WireNewCode()
            more.stores = ["one", "three"]
            #expect(try await code(app, more).problem.code == "not-yours")
            var longer = WireNewCode()
            longer.credentialSeconds = 86_400
            longer.stores = ["two"]
            let made = try await code(app, longer).message(WireNewAccountAnswer.self)
            clock.advance(seconds: 60)
            let next = try await server.signIn(code: made.code).message(WireSignInAnswer.self)
            #expect(next.stores == ["two"])
            let own = try await app.get("/v1/account").message(WireAccount.self).devices[0]
            #expect(next.expiresMilliseconds == own.expiresMilliseconds)
            #expect(own.expiresMilliseconds > 0)
            let like = try await server.signIn(
                code: code(app).message(WireNewAccountAnswer.self).code
            ).message(WireSignInAnswer.self)
            #expect(like.stores == ["one", "two"])
            var lasting = WireNewCode()
            lasting.codeSeconds = 601
            #expect(try await code(app, lasting).status == 400)
        }
    }

    @Test func `a device asks, another one approves, and it is signed in as shown`() async throws {
        try await withServer { server in
            let laptop = try await server.newDevice()
            let asked = try await ask(server, stores: ["notes"], seconds: 60)
            #expect(asked.intervalSeconds > 0)
            let pending = try await signIn(server, asked)
            #expect(pending.status == 409)
            #expect(try pending.problem.code == "sign-in-pending")
            #expect(pending.headers["retry-after"] == "\(asked.intervalSeconds)")
            let typed = asked.userCode.lowercased().replacingOccurrences(of: "-", with: "")
            let shown = try await laptop.get("/v1/sign-in-requests/\(typed)")
                .message(WireSignInRequest.self)
            #expect(shown.deviceName == "new phone" && shown.address == "127.0.0.1")
            #expect(shown.stores == ["notes"] && shown.credentialSeconds == 60)
            var grant = WireApproval()
            grant.stores = ["notes"]
            #expect(
                try await approve(asked, by: laptop.credential, server, grant).status == 204)
            let phone = try await signIn(server, asked).message(WireSignInAnswer.self)
            #expect(phone.account == laptop.account && phone.stores == ["notes"])
            #expect(phone.expiresMilliseconds == 0)
            let names = try await laptop.get("/v1/devices").message(WireDeviceList.self)
                .devices.map(\.name)
            #expect(names.contains("new phone"))
            #expect(try await signIn(server, asked).problem.code == "code-invalid")
            #expect(try await approve(asked, by: laptop.credential, server).status == 404)
            let entry = try await audit(server).first { $0.deed == "sign-in-approved" }
            #expect(entry?.actorDevice == laptop.id && entry?.detail == "127.0.0.1")
        }
    }

    @Test func `a confined device approves what it has itself, and nothing more`() async throws {
        try await withServer { server in
            _ = try await server.newDevice()
            let app = try await server.furtherDevice(stores: ["one"], seconds: 3_600)
            let asked = try await ask(server)
            var grant = WireApproval()
            grant.stores = ["one", "two"]
            let refused = try await approve(asked, by: app.credential, server, grant)
            #expect(try refused.problem.code == "not-yours")
            #expect(try await signIn(server, asked).problem.code == "sign-in-pending")
            // Everything that was asked for is everything that it has.
            #expect(try await approve(asked, by: app.credential, server).status == 204)
            let device = try await signIn(server, asked).message(WireSignInAnswer.self)
            #expect(device.stores == ["one"])
            let own = try await app.get("/v1/account").message(WireAccount.self).devices[0]
            #expect(device.expiresMilliseconds == own.expiresMilliseconds)
        }
    }

    @Test func `a denied device is told so, and nobody can approve it any more`() async throws {
        try await withServer { server in
            let laptop = try await server.newDevice()
            let asked = try await ask(server)
            let path = "/v1/sign-in-requests/\(asked.userCode)"
            let denied = try await server.send("DELETE", path, credential: laptop.credential)
            #expect(denied.status == 204)
            #expect(try await approve(asked, by: laptop.credential, server).status == 404)
            let answer = try await signIn(server, asked)
            #expect(answer.status == 403)
            #expect(try answer.problem.code == "sign-in-denied")
        }
    }

    @Test func `the operator approves for an account, with the credential and in the folder`()
        async throws
    {
        try await withServer { server in
            _ = try await server.newDevice()
            var grant = WireApproval()
            let first = try await ask(server)
            let operatorCredential = try server.operatorCredential
            #expect(
                try await approve(first, by: operatorCredential, server, grant).status == 400)
            grant.account = "nobody"
            #expect(
                try await approve(first, by: operatorCredential, server, grant).status == 404)
            grant.account = "ada"
            #expect(
                try await approve(first, by: operatorCredential, server, grant).status == 204)
            #expect(
                try await signIn(server, first).message(WireSignInAnswer.self).accountName
                    == "ada")
            let second = try await ask(server)
            let answer = try await server.sendInFolder(
                "POST", "/v1/sign-in-requests/\(second.userCode)/approval",
                body: WireFormat.json.encode(grant),
                headers: ["Content-Type": "application/json"])
            #expect(answer.status == 204)
            #expect(try await signIn(server, second).status == 200)
            let actors = try await audit(server).filter { $0.deed == "sign-in-approved" }
                .map(\.actor)
            #expect(actors == ["operator-locally", "operator-by-credential"])
        }
    }

    @Test func `a request is good for ten minutes, and then the server removes it`() async throws {
        let clock = TestClock(uptime: ServerClock.system.uptime)
        try await withServer({ $0.clock = clock.clock }) { server in
            let laptop = try await server.newDevice()
            let asked = try await ask(server)
            clock.advance(seconds: PairingRule.requestMilliseconds / 1_000)
            #expect(try await approve(asked, by: laptop.credential, server).status == 404)
            #expect(try await signIn(server, asked).problem.code == "code-invalid")
        }
    }

    @Test func `what a revoked device granted is void`() async throws {
        try await withServer { server in
            let owner = try await server.newDevice()
            let lost = try await server.furtherDevice()
            let made = try await code(lost).message(WireNewAccountAnswer.self)
            let asked = try await ask(server)
            #expect(try await approve(asked, by: lost.credential, server).status == 204)
            let revoked = try await server.send(
                "DELETE", "/v1/devices/\(lost.id)", credential: owner.credential)
            #expect(revoked.status == 204)
            #expect(try await server.signIn(code: made.code).problem.code == "code-invalid")
            #expect(try await signIn(server, asked).problem.code == "code-invalid")
        }
    }

    @Test func `a device has a share of its account's guesses at user codes`() async throws {
        try await withServer({
            $0.signInAllowance = .init(burst: 8, perSecond: 2)
            $0.clock = TestClock().clock
        }) { server in
            let app = try await server.newDevice()
            let laptop = try await server.furtherDevice()
            for _ in 0..<5 {
                #expect(try await app.get("/v1/sign-in-requests/2222-2222").status != 200)
            }
            let refused = try await app.get("/v1/sign-in-requests/2222-2223")
            #expect(refused.status == 429 && refused.headers["retry-after"] == "2")
            // What was refused takes nothing from the others.
            for text in ["2222-2222", "nonsense"] {
                #expect(try await laptop.get("/v1/sign-in-requests/\(text)").status == 404)
            }
        }
    }

    @Test func `guesses at user codes are limited by account and by address`() async throws {
        try await withServer({
            $0.signInAllowance = .init(burst: 4, perSecond: 2)
            $0.clock = TestClock().clock
        }) { server in
            // The sign-ins are two attempts of the address.
            let devices = [try await server.newDevice(), try await server.furtherDevice()]
            for device in devices {
                #expect(try await device.get("/v1/sign-in-requests/2222-2222").status == 404)
            }
            let third = try await server.signIn(code: "2222-2222")
            #expect(third.status == 429 && third.headers["retry-after"] == "1")
        }
    }
}
