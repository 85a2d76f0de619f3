// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
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

    @Test func `a token goes in the header, and is not a code`() async throws {
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

    @Test func `an answer without a credential is not a sign-in`() async throws {
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

    @Test func `a person's requests use the device's credential`() async throws {
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
        #expect(renamed.id == "00000000000000ff")
        #expect(renamed.name == "desk")
        #expect(renamed.expiresMilliseconds == 7)
        #expect(renamed.stores == ["a"])
        #expect(renamed.version == nil)
        try await AccountClient.revoke(device: "00ff", account)
        #expect(
            server.requests.map { "\($0.method) \($0.uri)" }
                == ["PATCH /v1/devices/ff%2F00", "DELETE /v1/devices/00ff"])
        #expect(
            server.requests.allSatisfy { $0.headers["authorization"] == ["Bearer secret"] })
    }
}
