// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquityCore

@testable import Ubiquity
@testable import UbiquityCLI

struct ImportTests {
    private func plan(_ values: [String: Any], _ limits: StoreLimits = StoreLimits()) throws
        -> ImportPlan
    {
        let data = try PropertyListSerialization.data(
            fromPropertyList: values, format: .binary, options: 0)
        return ImportPlan(try PropertyListFile.read(data), limits: limits)
    }

    @Test func `entries that a store can take are accepted with their types`() throws {
        let plan = try plan(["a": 1, "b": 1.0, "c": true])
        #expect(
            plan.accepted == [
                try Key("a"): .integer(1), try Key("b"): .real(1), try Key("c"): .boolean(true),
            ])
        #expect(plan.rejected.isEmpty)
    }

    @Test func `each entry that a store cannot take is named with its reason`() throws {
        var limits = StoreLimits()
        limits.valueBytesMax = 4
        let plan = try plan(
            ["": 1, String(repeating: "k", count: 65): true, "large": "12345", "ok": "1234"], limits
        )
        #expect(plan.accepted.keys.map(\.string) == ["ok"])
        #expect(plan.rejected.map(\.key.count) == [0, 65, 5])
        #expect(plan.rejected[0].line == "  \"\": a key must not be empty")
        #expect(plan.rejected[2].reason.contains("5 bytes"))
    }

    @Test func `a bad leaf is named with its place`() {
        let entry = PropertyListFile.Entry(
            key: "list", value: .failure(UnsupportedValue("a URL is no value", path: "[3].url")))
        let plan = ImportPlan([entry], limits: StoreLimits())
        #expect(plan.rejected.map(\.line) == ["  \"list\"[3].url: a URL is no value"])
    }

    @Test func `one bad entry of a file is named with its place, and the others are taken`() throws
    {
        let list = "<plist><dict><key>a</key><true/>\n<key>b</key><data>aGk</data></dict></plist>"
        let json = "{\"a\": true,\n\"b\": null}"
        for (text, line) in [
            (list, "  \"b\": \"aGk\" is not data in base64 (line 2, column 13)"),
            (json, "  \"b\": null is not a value (line 2, column 6)"),
        ] {
            let entries = try PropertyListFile.read(Data(text.utf8), takesJSON: true)
            let plan = ImportPlan(entries, limits: StoreLimits())
            #expect(plan.accepted == [try Key("a"): .boolean(true)])
            #expect(plan.rejected.map(\.line) == [line])
        }
    }

    @Test func `JSON comes in as it goes out`() throws {
        let values: [Key: PropertyListValue] = [
            try Key("date"): .date(816_948_000.25), try Key("data"): .data([1, 2]),
            try Key("real"): .real(5), try Key("integer"): .integer(5), try Key("nan"): .real(.nan),
            try Key("minus"): .real(-0.0), try Key("most"): .unsigned(.max),
            try Key("nested"): .array([.dictionary(["": .date(1), "b": .array([])])]),
        ]
        let exact = JSON.values(values).text(isExact: true)
        let read = try PropertyListFile.read(Data(exact.utf8), takesJSON: true)
        #expect(ImportPlan(read, limits: StoreLimits()).accepted == values)
        let numbers = values.filter {
            ["real", "integer", "most", "minus"].contains($0.key.string)
        }
        let plain = JSON.values(numbers).text
        let plainly = try PropertyListFile.read(Data(plain.utf8), takesJSON: true)
        #expect(ImportPlan(plainly, limits: StoreLimits()).accepted == numbers)
    }

    @Test func `an overflow says by how much`() {
        let violation = LimitViolation.storeBytes(bytes: 3_000, max: 1_000)
        #expect(violation.excess.hasSuffix("2,000 bytes too many"))
    }

    @Test func `the project's sample has every type and can be imported whole`() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Examples/preferences.plist")
        let entries = try PropertyListFile.read(path: file.path)
        let plan = ImportPlan(entries, limits: StoreLimits())
        #expect(plan.rejected.isEmpty)
        #expect(plan.accepted.count >= 60)
        #expect(Set(plan.accepted.values.map(\.typeName)).count == 8)
    }
}

struct XMLFitnessTests {
    @Test func `what XML cannot hold is told apart from what it changes`() throws {
        let compatibility = XMLCompatibility([
            try Key("bell"): .array([.string("\u{07}")]), try Key("old"): .date(.nan),
            try Key("fraction"): .date(0.5), try Key("minus"): .real(-0.0),
            try Key("fine"): .dictionary([
                "a": .string("\t\n"), "b": .date(1), "c": .string("a\r\n"),
            ]),
        ])
        #expect(compatibility.impossible.map(\.string) == ["bell", "old"])
        #expect(compatibility.lossy.map(\.string) == ["fraction", "minus"])
    }
}
