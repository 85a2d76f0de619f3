// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

struct AccountTests {
    @Test func `a code signs a device in, in any case and without its hyphens`() async throws {
        try await withServer { server in
            let invitation = try await server.invite("ada")
            let typed = invitation.code.lowercased().replacingOccurrences(of: "-", with: "")
            let answer = try await server.signIn(code: typed, name: "Ada's laptop")
            #expect(answer.status == 200)
            let device = try answer.message(WireSignInAnswer.self)
            #expect(device.account == invitation.account)
            #expect(device.accountName == "ada")
            #expect(device.device.utf8.count == 16)
            let account = try await server.send(
                "GET", "/v1/account", credential: device.credential
            ).message(WireAccount.self)
            #expect(account.name == "ada")
            #expect(account.devices.map(\.name) == ["Ada's laptop"])
        }
    }

    @Test func `a code works once`() async throws {
        try await withServer { server in
            let code = try await server.invite("ada").code
            #expect(try await server.signIn(code: code).status == 200)
            let again = try await server.signIn(code: code)
            #expect(again.status == 401)
            #expect(try again.problem.code == "code-invalid")
        }
    }

    @Test func `an expired code is refused as a wrong one is`() async throws {
        try await withServer({ $0.constants.signInCodeSeconds = 0 }) { server in
            let expired = try await server.signIn(code: server.invite("ada").code)
            let wrong = try await server.signIn(code: "2222-2222-2222")
            #expect(expired.status == 401)
            #expect(expired.body == wrong.body)
        }
    }

    @Test func `sign-in attempts are throttled`() async throws {
        try await withServer({
            $0.signInAllowance = .init(burst: 2, perSecond: 0.5)
            $0.clock = TestClock().clock
        }) { server in
            _ = try await server.signIn(code: "2222-2222-2222")
            _ = try await server.signIn(code: "2222-2222-2222")
            let third = try await server.signIn(code: "2222-2222-2222")
            #expect(third.status == 429)
            #expect(third.headers["retry-after"] == "2")
        }
    }

    @Test func `an account's name is given once, and another code signs in another device`()
        async throws
    {
        try await withServer { server in
            let first = try await server.newDevice(account: "Ada Lovelace")
            var account = WireNewAccount()
            account.name = "Ada Lovelace"
            let again = try await server.send(
                "POST", "/v1/accounts", credential: server.operatorCredential, account)
            #expect(again.status == 409)
            #expect(try again.problem.code == "account-exists")
            let second = try await server.furtherDevice(account: "Ada%20Lovelace")
            #expect(second.account == first.account)
            #expect(second.id != first.id)
        }
    }

    @Test func `a revoked device is refused at once, and its streams end`() async throws {
        try await withServer { server in
            let lost = try await server.newDevice()
            let owner = try await server.furtherDevice()
            var stream = try await server.listen(lost)
            #expect(try await stream.nextEvent()?.name == "changes")
            #expect(try await stream.nextEvent()?.name == "ready")
            let answer = try await server.send(
                "DELETE", "/v1/devices/\(lost.id)", credential: owner.credential)
            #expect(answer.status == 204)
            #expect(try await stream.nextEvent() == nil)
            let refused = try await lost.pull()
            #expect(refused.status == 401)
            #expect(try refused.problem.code == "credential-invalid")
        }
    }

    @Test func `a device revoked through the data folder is out, and its stream ends`() async throws
    {
        try await withServer { server in
            let device = try await server.newDevice()
            #expect(try await device.pull().status == 200)
            var stream = try await server.listen(device)
            #expect(try await stream.nextEvent()?.name == "changes")
            let answer = try await server.sendInFolder(
                "DELETE", "/v1/accounts/ada/devices/\(device.id)")
            #expect(answer.status == 204)
            while try await stream.next() != nil {}
            #expect(try await device.pull().status == 401)
        }
    }

    @Test func `an operator lists accounts a page at a time, whatever they are called`()
        async throws
    {
        try await withServer { server in
            let names = ["a+b & c=d", "ada", "Zoë 100%"].sorted {
                $0.utf8.lexicographicallyPrecedes($1.utf8)
            }
            for name in names { _ = try await server.newDevice(account: name) }
            var found: [WireAccount] = []
            while found.count <= names.count {
                let after = (found.last?.name ?? "").addingPercentEncoding(
                    withAllowedCharacters: .alphanumerics)
                let query = found.isEmpty ? "" : "&after=\(after ?? "")"
                let page = try await server.send(
                    "GET", "/v1/accounts?limit=1\(query)", credential: server.operatorCredential
                ).message(WireAccountList.self).accounts
                #expect(page.count <= 1)
                if page.isEmpty { break }
                found += page
            }
            #expect(found.map(\.name) == names)
            #expect(found.allSatisfy { $0.devices.map(\.name) == ["laptop"] })
            for limit in ["0", "1001", "x"] {
                let answer = try await server.send(
                    "GET", "/v1/accounts?limit=\(limit)", credential: server.operatorCredential)
                #expect(answer.status == 400)
            }
        }
    }

    @Test func `a code's terms are checked when it is made`() async throws {
        try await withServer { server in
            _ = try await server.newDevice()
            func status(_ configure: (inout WireNewCode) -> Void) async throws -> Int {
                var code = WireNewCode()
                configure(&code)
                return try await server.send(
                    "POST", "/v1/accounts/ada/codes", credential: server.operatorCredential, code
                ).status
            }
            #expect(try await status { $0.stores = ["no good"] } == 400)
            #expect(try await status { $0.stores = (0...64).map { "s\($0)" } } == 400)
            #expect(try await status { $0.credentialSeconds = .max } == 400)
            #expect(try await status { $0.credentialSeconds = 3_000_000_000 } == 200)
        }
    }
}
