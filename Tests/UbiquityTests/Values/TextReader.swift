// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityCore

/// Foundation's reader of property lists, as far as these tests need it.
enum TextReader {
    struct NotReadable: Error {}

    static func read(_ bytes: [UInt8]) throws -> PropertyListValue {
        try value(
            PropertyListSerialization.propertyList(from: Data(bytes), options: [], format: nil))
    }

    private static func value(_ any: Any) throws -> PropertyListValue {
        switch any {
        case let boolean as Bool where type(of: any) == Bool.self: .boolean(boolean)
        case let date as Date: .date(date.timeIntervalSinceReferenceDate)
        case let data as Data: .data([UInt8](data))
        case let string as String: .string(string)
        case let number as NSNumber: value(number)
        case let array as [Any]: .array(try array.map(value))
        case let dictionary as [String: Any]:
            .dictionary(
                Dictionary(
                    uniqueKeysWithValues: try dictionary.map {
                        (ExactString($0.key), try value($0.value))
                    }))
        default: throw NotReadable()
        }
    }

    private static func value(_ number: NSNumber) -> PropertyListValue {
        if type(of: number) == type(of: NSNumber(value: true)) { return .boolean(number.boolValue) }
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "d"), UInt8(ascii: "f"):
            return .real(PropertyListValue.canonical(number.doubleValue))
        case UInt8(ascii: "Q"): return PropertyListValue(unsigned: number.uint64Value)
        default: return .integer(number.int64Value)
        }
    }
}
