// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity
internal import UbiquityCore

extension FuzzEntry {
    /// A property list or JSON to import.
    static var propertyList: FuzzEntry {
        FuzzEntry("property-list", stack: .system, bytesMax: 16_384) {
            try Samples.propertyLists()
        } check: { bytes in
            guard let entries = try? PropertyListFile.read(Data(bytes), takesJSON: true) else {
                return
            }
            var values: [Key: PropertyListValue] = [:]
            for entry in entries {
                guard let value = try? entry.value.get() else { continue }
                guard Laws.isSmall(value) else { return }
                try Laws.check(value)
                guard let key = try? Key(entry.key) else { continue }
                try? StoreLimits().check(key, .value(value))
                values[key] = value
            }
            try checkExport(of: values)
        }
    }

    /// Checks that what was read can be written and read again: all of it in the binary format, and
    /// in XML what that holds.
    private static func checkExport(of values: [Key: PropertyListValue]) throws {
        let binary = BinaryPropertyList.encode(.entries(values))
        try must(try readAgain(binary) == values, "a property list changed in its binary form")
        if let xml = PropertyListXML.encode(.entries(values)),
            XMLCompatibility(values).lossy.isEmpty
        {
            try must(try readAgain(xml) == values, "a property list changed in XML")
        }
    }

    private static func readAgain(_ bytes: [UInt8]) throws -> [Key: PropertyListValue] {
        var values: [Key: PropertyListValue] = [:]
        for entry in try PropertyListFile.read(Data(bytes)) {
            values[try Key(entry.key)] = try entry.value.get()
        }
        return values
    }
}
