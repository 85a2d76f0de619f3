// SPDX-License-Identifier: Apache-2.0

import NIOHTTP1
import Testing
import Ubiquity
import UbiquityCore
import UbiquityWire

struct AccountClientTests {
    @Test func `a sign-in exchanges a code for a credential`() async throws {
        var answer = WireSignInAnswer()
        answer.account = "42"
        answer.accountName = "Ada"
        answer.device = "00000000000000ff"
        answer.credential = "secret"
        let body = WireFormat.protobuf.encode(answer)
        let server = try await StubServer { _ in .init(body: body) }
        let account = try await AccountClient.signIn(
            server: server.address + "/", by: .code("123"), deviceName: "desk")
        #expect(
            account
                == SignedInAccount(
                    server: server.address, account: "42", accountName: "Ada",
                    device: "00000000000000ff", deviceName: "desk", credential: "secret"))
        let request = try #require(server.requests.first)
        #expect(request.uri == "/v1/sign-in")
        #expect(request.headers["authorization"].isEmpty)
        let wire = try WireFormat.protobuf.decode(WireSignIn.self, from: request.body)
        #expect(wire.code == "123")
        #expect(wire.deviceName == "desk")
    }

    @Test func `a token goes in the header, and is no code`() async throws {
        let server = try await StubServer { _ in .init(status: .unauthorized) }
        await #expect(throws: LinkFailure.self) {
            try await AccountClient.signIn(
                server: server.address, by: .token("a.b.c"), deviceName: "desk")
        }
        let request = try #require(server.requests.first)
        #expect(request.headers["authorization"] == ["Bearer a.b.c"])
        let wire = try WireFormat.protobuf.decode(WireSignIn.self, from: request.body)
        #expect(wire.code.isEmpty)
    }

    @Test func `an answer without a credential is no sign-in`() async throws {
        let server = try await StubServer { _ in .init() }
        await #expect(throws: LinkFailure.self) {
            try await AccountClient.signIn(server: server.address, by: .code("1"), deviceName: "d")
        }
    }

    @Test func `a sign-out revokes the device's credential with itself`() async throws {
        let server = try await StubServer { _ in .init(status: .noContent) }
        try await AccountClient.signOut(
            SignedInAccount(
                server: server.address, account: "42", accountName: "Ada", device: "00ff",
                deviceName: "desk", credential: "secret"))
        let request = try #require(server.requests.first)
        #expect(request.method == .DELETE)
        #expect(request.uri == "/v1/devices/00ff")
        #expect(request.headers["authorization"] == ["Bearer secret"])
    }

    @Test func `the operator makes accounts, and codes for them by any name`() async throws {
        var answer = WireNewAccountAnswer()
        answer.account = "42"
        answer.code = "123"
        answer.expiresMilliseconds = 9
        let body = WireFormat.protobuf.encode(answer)
        let server = try await StubServer { _ in .init(status: .created, body: body) }
        let client = try OperatorClient(server: server.address, credential: "op")
        let made = try await client.createAccount(name: "Ada/é")
        #expect(made.code == "123")
        #expect(made.expiresMilliseconds == 9)
        _ = try await client.newCode(accountName: "Ada/é")
        #expect(server.requests.map(\.uri) == ["/v1/accounts", "/v1/accounts/Ada%2F%C3%A9/codes"])
        #expect(server.requests.allSatisfy { $0.headers["authorization"] == ["Bearer op"] })
    }

    @Test func `a person's requests go by the device's credential`() async throws {
        var device = WireDevice()
        device.id = "00000000000000ff"
        device.name = "desk"
        device.expiresMilliseconds = 7
        device.stores = ["a"]
        let body = WireFormat.protobuf.encode(device)
        let server = try await StubServer { request in
            request.method == .PATCH ? .init(body: body) : .init(status: .noContent)
        }
        let account = SignedInAccount(
            server: server.address, account: "42", accountName: "Ada", device: "00ff",
            deviceName: "desk", credential: "secret")
        let renamed = try await AccountClient.rename(device: "ff/00", to: "desk", account)
        #expect(
            renamed
                == ServerDevice(
                    id: "00000000000000ff", name: "desk", created: 0, seen: 0, expires: 7,
                    stores: ["a"]))
        try await AccountClient.revoke(device: "00ff", account)
        try await AccountClient.erase(account)
        #expect(
            server.requests.map { "\($0.method) \($0.uri)" }
                == [
                    "PATCH /v1/devices/ff%2F00", "DELETE /v1/devices/00ff", "DELETE /v1/account",
                ])
        #expect(
            server.requests.allSatisfy { $0.headers["authorization"] == ["Bearer secret"] })
    }

    @Test func `a long list of accounts comes in pages`() async throws {
        func page(_ numbers: Range<Int>) -> [UInt8] {
            var list = WireAccountList()
            list.accounts = numbers.map { number in
                var account = WireAccount()
                account.name = "n\(10_000 + number)"
                return account
            }
            return WireFormat.protobuf.encode(list)
        }
        let pages = [
            "": page(0..<1_000), "?after=n10999": page(1_000..<1_003), "?after=n11002": page(0..<0),
        ]
        let server = try await StubServer { request in
            .init(body: pages[String(request.uri.dropFirst("/v1/accounts".count))] ?? [])
        }
        let accounts = try await OperatorClient(server: server.address, credential: "op").accounts()
        #expect(accounts.map(\.name) == (10_000..<11_003).map { "n\($0)" })
        #expect(
            server.requests.map(\.uri)
                == ["", "?after=n10999", "?after=n11002"].map { "/v1/accounts\($0)" })
    }
}
