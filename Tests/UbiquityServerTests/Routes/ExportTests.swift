// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Logging
import Testing
import UbiquityArchive
import UbiquityCore
import UbiquityWire

@testable import UbiquityServer

// One after the other: each test has servers of its own, and others measure time meanwhile.
@Suite(.serialized) struct ExportTests {
    private func archive(_ answer: TestServer.Answer) throws -> Archive {
        try #require(answer.status == 200, "\(answer.text)")
        return try Archive(answer.body) { bytes in
            try #require(ExportedText(bytes)?.value)
        }
    }

    private func values(
        _ archive: Archive, _ identifier: String = "notes"
    ) throws -> [String: PropertyListValue] {
        let store = try #require(
            archive.manifest.stores.first { $0.identifier.string == identifier })
        let entries = try archive.entries(of: store) { try #require(ExportedText($0)?.value) }
        return Dictionary(uniqueKeysWithValues: entries.map { ($0.key.string, $0.value) })
    }

    @Test func `a person exports all their stores and devices`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            _ = try await server.furtherDevice()
            try await device.set("a", "1")
            try await device.set("b", "2", store: "other")
            let answer = try await device.get("/v1/account/export")
            #expect(answer.headers["content-type"] == "application/x-tar")
            #expect(answer.headers["content-disposition"]?.contains(device.account) == true)
            let archive = try archive(answer)
            #expect(archive.manifest.accountName == "ada")
            #expect(archive.manifest.accountID == device.account)
            #expect(archive.manifest.devices.count == 2)
            #expect(archive.manifest.stores.map(\.identifier.string) == ["notes", "other"])
            #expect(try values(archive) == ["a": .string("1")])
            #expect(try values(archive, "other") == ["b": .string("2")])
        }
    }

    @Test func `an archive has what keys were if that is asked for, and says so`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            for value in ["1", "2"] { try await device.set("a", value) }
            let path = "/v1/account/export"
            #expect(try await device.get("\(path)?with_history=yes").status == 400)
            let without = try archive(try await device.get(path))
            #expect(without.manifest.stores.map(\.history) == [nil])
            let answer = try await device.get("\(path)?with_history=true")
            let with = try archive(answer)
            #expect(with.manifest.stores.map(\.history) == ["history/notes.plist"])
            #expect(try values(with) == ["a": .string("2")])
            var check = ArchiveCheck()
            try check.take(answer.body)
            #expect(try check.finish())
            for part in ["<string>replaced</string>", "<string>current</string>"] {
                #expect(answer.text.contains(part))
            }
        }
    }

    @Test func `an archive has a key with a conflict policy as a person sees it`() async throws {
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
            let archive = try archive(try await device.get("/v1/account/export"))
            #expect(try values(archive) == ["launches": .integer(7)])
            #expect(archive.manifest.stores[0].keys == 1)
        }
    }

    @Test func `every value of the contract is in an archive exactly`() async throws {
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
            let archive = try archive(try await device.get("/v1/account/export"))
            #expect(try values(archive) == given)
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
            #expect(try values(try archive(answer)) == ["secret": .string("bob's")])
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
        ("application/x-tar", 200), ("application/*", 200), ("*/*", 200), ("application/json", 406),
    ])
    func `an archive is sent to clients that accept one`(_ accept: String, _ status: Int)
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

    @Test func `one account is exported once at a time, and four at all`() throws {
        let server = Server(
            ServerSettings(dataFolder: ""), storage: MemoryServerStorage(), operatorHash: nil,
            logger: Logger(label: "test"))
        defer { server.close() }
        let exports = server.routes.exports
        let accounts = (0..<5).map { _ in AccountID.random() }
        var held = try accounts[0...3].map { try exports.permit(for: $0) }
        #expect(throws: Busy()) { try exports.permit(for: accounts[0]) }
        #expect(throws: Busy()) { try exports.permit(for: accounts[4]) }
        held.removeFirst()
        _ = try exports.permit(for: accounts[4])
    }

    @Test func `a reader of the data folder can export beside the server`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            try await device.set("a", "1")
            let export = try await server.sendInFolder("GET", "/v1/accounts/ada/export")
            let archive = try Archive(export.body) { try #require(ExportedText($0)?.value) }
            #expect(try values(archive) == ["a": .string("1")])
            #expect(
                try await server.sendInFolder("GET", "/v1/accounts/eve/export").status == 404)
        }
    }
}

/// An XML property list, as far as these tests have one in it.
private struct ExportedText {
    var value: PropertyListValue

    init?(_ bytes: [UInt8]) {
        let root = try? PropertyListSerialization.propertyList(
            from: Data(bytes), options: [], format: nil)
        guard let root else { return nil }
        value = Self.value(root)
    }

    private static func value(_ any: Any) -> PropertyListValue {
        switch any {
        case let string as String: .string(string)
        case let date as Date: .date(date.timeIntervalSinceReferenceDate)
        case let number as NSNumber: .integer(number.int64Value)
        case let array as [Any]: .array(array.map(value))
        case let dictionary as [String: Any]:
            .dictionary(
                Dictionary(
                    uniqueKeysWithValues: dictionary.map { (ExactString($0), value($1)) }))
        default: .string("\(any)")
        }
    }
}
