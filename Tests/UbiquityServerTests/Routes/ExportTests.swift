// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore
import UbiquityWire

@testable import UbiquityServer

// One after the other: each test has servers of its own, and others measure time meanwhile.
@Suite(.serialized) struct ExportTests {
    private func export(
        _ answer: RunningServer.Answer
    ) throws -> (name: String, stores: [AccountFileReader.Store]) {
        try #require(answer.status == 200, "\(answer.text)")
        var reader = AccountFileReader()
        let stores = try reader.take(answer.body)
        try reader.finish()
        return (reader.accountName, stores)
    }

    private func values(
        _ answer: RunningServer.Answer, _ identifier: String = "notes"
    ) throws -> [String: PropertyListValue] {
        let store = try #require(
            try export(answer).stores.first { $0.identifier.string == identifier })
        return Dictionary(uniqueKeysWithValues: store.entries.map { ($0.key.string, $0.value) })
    }

    @Test func `a person exports all their stores and devices`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            _ = try await server.furtherDevice()
            try await device.set("a", "1")
            try await device.set("b", "2", store: "other")
            let answer = try await device.get("/v1/account/export")
            #expect(answer.headers["content-type"] == "application/json")
            #expect(answer.headers["content-disposition"]?.contains(device.account) == true)
            let (name, stores) = try export(answer)
            #expect(name == "ada")
            #expect(answer.text.contains(device.account) && answer.text.contains(device.id))
            #expect(stores.map(\.identifier.string) == ["notes", "other"])
            #expect(try values(answer) == ["a": .string("1")])
            #expect(try values(answer, "other") == ["b": .string("2")])
        }
    }

    @Test func `an export has what keys were if that is asked for`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            for value in ["1", "2"] { try await device.set("a", value) }
            let path = "/v1/account/export"
            #expect(try await device.get("\(path)?with_history=yes").status == 400)
            let without = try await device.get(path)
            #expect(!without.text.contains("history"))
            let with = try await device.get("\(path)?with_history=true")
            #expect(try values(with) == ["a": .string("2")])
            for part in [#""history":["#, #""replaced":{"#, #""current":true"#, device.id] {
                #expect(with.text.contains(part))
            }
        }
    }

    @Test func `an export has a key with a conflict policy as a person sees it`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let counts = [("cone", 3), ("ctwo", 4)].map { part, total in
                var record = WireRecord.write(
                    "launches", .array([.integer(1), .integer(Int64(total))]),
                    at: nowMilliseconds())
                record.part = part
                return record
            }
            let answer = try await device.push(counts + [.write("gone", "x")])
            try #require(answer.status == 200)
            _ = try await device.push([.write("gone", nil)])
            let export = try await device.get("/v1/account/export")
            #expect(try values(export) == ["launches": .integer(7)])
        }
    }

    @Test func `every value of the contract is in an export exactly`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let deepest = (1..<PropertyListValue.depthMax).reduce(PropertyListValue.array([])) {
                value, _ in .array([value])
            }
            let given: [String: PropertyListValue] = [
                "deepest": deepest, "nan": .real(.nan), "minus": .real(-0.0),
                "date": .date(0.125), "greatest": .unsigned(.max), "text": .string("\u{0}\r"),
                "data": .data([0, 255]), "true": .boolean(true), "one": .integer(1),
            ]
            let answer = try await device.push(given.map { .write($0.key, $0.value) }, .protobuf)
            try #require(answer.status == 200)
            #expect(try values(try await device.get("/v1/account/export")) == given)
        }
    }

    @Test func `the operator exports any account, and a device its own only`() async throws {
        try await withServer { server in
            let ada = try await server.newDevice()
            let bob = try await server.newDevice(account: "bob")
            try await bob.set("secret", "bob's")
            let path = "/v1/accounts/bob/export"
            let answer = try await server.send(
                "GET", path, credential: server.operatorCredential)
            #expect(try values(answer) == ["secret": .string("bob's")])
            #expect(try await ada.get(path).status == 403)
            #expect(try await server.send("GET", path).status == 401)
            #expect(try await server.send("GET", "/v1/account/export").status == 401)
            let none = try await server.send(
                "GET", "/v1/accounts/eve/export", credential: server.operatorCredential)
            #expect(none.status == 404)
            let own = try await server.send(
                "GET", "/v1/account/export", credential: server.operatorCredential)
            #expect(own.status == 403)
        }
    }

    @Test(arguments: [
        ("application/json", 200), ("application/*", 200), ("*/*", 200), ("application/x-tar", 406),
    ])
    func `an export is sent to clients that accept JSON`(_ accept: String, _ status: Int)
        async throws
    {
        try await withServer { server in
            let device = try await server.newDevice()
            let answer = try await server.send(
                "GET", "/v1/account/export", credential: device.credential,
                headers: ["Accept": accept])
            #expect(answer.status == status)
        }
    }

    @Test func `a reader of the data folder can export beside the server`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            try await device.set("a", "1")
            let export = try await server.sendInFolder("GET", "/v1/accounts/ada/export")
            #expect(try values(export) == ["a": .string("1")])
            #expect(
                try await server.sendInFolder("GET", "/v1/accounts/eve/export").status == 404)
        }
    }
}
