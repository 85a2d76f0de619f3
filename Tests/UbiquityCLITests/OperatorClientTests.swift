// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import NIOHTTP1
import Testing
import Ubiquity
import UbiquityWire

@testable import UbiquityCLI

/// The operator's requests to a server.
struct OperatorClientTests {
    @Test func `the operator creates accounts, and codes for them under any name`() async throws {
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
