// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import Ubiquity
import UbiquityCore

struct PropertyListFileTests {
    private func values() throws -> [Key: PropertyListValue] {
        [
            try Key("bool"): .boolean(true), try Key("one"): .integer(1), try Key("real"): .real(1),
            try Key("least"): .integer(.min), try Key("most"): .unsigned(.max),
            try Key("text"): .string("é👩🏽‍🚀<&"), try Key("data"): .data([0, 255]),
            try Key("nested"): .array([.dictionary(["a": .boolean(false)]), .array([])]),
            try Key("date"): .date(700_000_000),
        ]
    }

    private func read(_ data: Data) throws -> [Key: PropertyListValue] {
        var values: [Key: PropertyListValue] = [:]
        for entry in try PropertyListFile.read(data) {
            values[try Key(entry.key)] = try entry.value.get()
        }
        return values
    }

    private func data(
        of values: [Key: PropertyListValue], _ format: PropertyListSerialization.PropertyListFormat
    ) throws -> Data {
        try PropertyListSerialization.data(
            fromPropertyList: PropertyListValue.entries(values).boxed, format: format, options: 0)
    }

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
    func `every type is read from both forms`(
        _ format: PropertyListSerialization.PropertyListFormat
    ) throws {
        let values = try values()
        #expect(try read(try data(of: values, format)) == values)
    }

    @Test func `the binary form keeps a date's fraction, the XML form its seconds`() throws {
        let key = try Key("date")
        let values = [key: PropertyListValue.date(700_000_000.123456)]
        #expect(try read(try data(of: values, .binary)) == values)
        #expect(try read(try data(of: values, .xml)) == [key: .date(700_000_000)])
    }

    @Test func `a file is read, and one that is not there is named`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.plist")
        let data = try data(of: [try Key("a"): .integer(1)], .xml)
        try data.write(to: URL(fileURLWithPath: path))
        #expect(try PropertyListFile.read(path: path).map(\.key) == ["a"])
        let error = #expect(throws: PropertyListFileError.self) {
            try PropertyListFile.read(path: folder.file("no"))
        }
        #expect(error?.description.contains(folder.file("no")) == true)
    }

    @Test(arguments: ["", "hello world", "<plist", "\0\0"])
    func `a file that is not a property list is reported as such`(_ text: String) {
        let error = #expect(throws: PropertyListFileError.self) {
            try PropertyListFile.read(Data(text.utf8), name: "x.plist")
        }
        guard case .noPropertyList("x.plist", _) = error else {
            Issue.record("another error: \(error as Any)")
            return
        }
    }

    @Test func `a root that is not a dictionary is named as what it is`() throws {
        let data = try PropertyListSerialization.data(
            fromPropertyList: [1], format: .xml, options: 0)
        #expect(throws: PropertyListFileError.rootIsNoDictionary(name: "x", root: "an array")) {
            try PropertyListFile.read(data, name: "x")
        }
    }
}
