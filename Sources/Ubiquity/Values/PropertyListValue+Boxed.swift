// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

extension PropertyListValue {
    /// The value as a Foundation object: an `NSString`, `NSNumber`, `NSDate`, `NSData`, `NSArray`
    /// or `NSDictionary`, including nested values.
    ///
    /// Numbers are not Swift numbers: on Linux a Swift `Int` in an `Any` only casts to `Int`, while
    /// an `NSNumber` casts to everything that code written for Apple's systems expects.
    package var boxed: Any {
        switch self {
        case .string(let string): string.string as NSString
        case .boolean(let boolean): NSNumber(value: boolean)
        case .integer(let integer): NSNumber(value: integer)
        case .unsigned(let unsigned): NSNumber(value: unsigned)
        case .real(let real): NSNumber(value: real)
        case .date(let seconds): NSDate(timeIntervalSinceReferenceDate: seconds)
        case .data(let bytes): NSData(data: Data(bytes))
        case .sealed(let box): NSData(data: Data(box.bytes))
        case .array(let values): NSArray(array: values.map(\.boxed))
        case .dictionary(let entries): Self.boxed(entries)
        }
    }

    /// The elements of an array, each boxed; nil for any other value.
    ///
    /// Preferable to a cast of ``boxed``, which on Linux turns an `NSNumber` of a Bool into a
    /// `Bool` that only casts to `Bool`.
    package var boxedArray: [Any]? {
        if case .array(let values) = self { values.map(\.boxed) } else { nil }
    }

    /// The values of a dictionary, each boxed; nil for any other value.
    ///
    /// Of two keys that are equal as Swift strings, the one whose bytes sort first stays.
    package var boxedDictionary: [String: Any]? {
        guard case .dictionary(let entries) = self else { return nil }
        var boxed: [String: Any] = [:]
        boxed.reserveCapacity(entries.count)
        for (key, value) in entries.sorted(by: { $0.key > $1.key }) {
            // Removed first, because an assignment alone would keep the old key with the new value.
            boxed[key.string] = nil
            boxed[key.string] = value.boxed
        }
        return boxed
    }

    /// The value as `string(forKey:)` returns it: a Bool is "1" or "0", a number is written as by
    /// `NSNumber.stringValue`. Nil if it is neither a string nor a number.
    package var asString: String? {
        switch self {
        case .string(let string): string.string
        case .boolean(let boolean): boolean ? "1" : "0"
        case .integer(let integer): String(integer)
        case .unsigned(let unsigned): String(unsigned)
        case .real(let real): NSNumber(value: real).stringValue
        case .date, .data, .array, .dictionary, .sealed: nil
        }
    }

    /// Describes the type in a sentence.
    package var kind: String {
        switch self {
        case .string: "a string"
        case .boolean: "a Bool"
        case .integer, .unsigned: "an integer"
        case .real: "a real"
        case .date: "a date"
        case .data: "data"
        case .array: "an array"
        case .dictionary: "a dictionary"
        case .sealed: "a sealed value"
        }
    }

    private static func boxed(_ entries: [ExactString: PropertyListValue]) -> NSDictionary {
        let boxed = NSMutableDictionary(capacity: entries.count)
        for (key, value) in entries { boxed.setObject(value.boxed, forKey: key.string as NSString) }
        return boxed
    }
}
