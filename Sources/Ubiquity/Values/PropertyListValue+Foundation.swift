// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

extension PropertyListValue {
    /// Converts a value of an app: Swift and Foundation types, nested in any way.
    ///
    /// Bools, integers and reals keep their type, also inside an `NSNumber`. NaNs become the
    /// store's one NaN. A decimal number becomes the nearest real.
    /// - Throws: ``UnsupportedValue`` with the place of the first part that cannot be stored.
    package init(_ any: Any) throws(UnsupportedValue) { try self.init(any, depth: 1) }

    fileprivate init(_ any: Any, depth: Int) throws(UnsupportedValue) {
        guard depth <= Self.depthMax else { throw .tooDeep }
        // Bridging would turn a Bool into a number, so objects and Swift types are checked
        // separately.
        if Swift.type(of: any) == AnyHashable.self, let hashable = any as? AnyHashable {
            try self.init(hashable.base, depth: depth)
        } else if Swift.type(of: any) is AnyClass {
            try self.init(object: any, depth: depth)
        } else {
            try self.init(swift: any, depth: depth)
        }
    }

    private init(object: Any, depth: Int) throws(UnsupportedValue) {
        switch object {
        case let number as NSDecimalNumber: self.init(number.decimalValue)
        case let number as NSNumber: self.init(number)
        case let string as NSString: self = .string(ExactString(string as String))
        case let date as NSDate: self = .date(Self.canonical(date.timeIntervalSinceReferenceDate))
        case let data as NSData: self = .data([UInt8](data as Data))
        case let array as NSArray: try self.init(elements: array, depth: depth)
        case let dictionary as NSDictionary: try self.init(entries: dictionary, depth: depth)
        default: throw .type(of: object)
        }
    }

    private init(swift value: Any, depth: Int) throws(UnsupportedValue) {
        switch value {
        case let string as String: self = .string(ExactString(string))
        case let boolean as Bool: self = .boolean(boolean)
        case let integer as any BinaryInteger: try self.init(integer)
        case let real as Double: self = .real(Self.canonical(real))
        case let real as Float: self = .real(Self.canonical(Double(real)))
        case let real as CGFloat: self = .real(Self.canonical(Double(real)))
        case let decimal as Decimal: self.init(decimal)
        case let date as Date: self = .date(Self.canonical(date.timeIntervalSinceReferenceDate))
        case let data as Data: self = .data([UInt8](data))
        case let string as Substring: self = .string(ExactString(String(string)))
        case let wrapped as any AnyOptional:
            guard let wrapped = wrapped.anyWrapped else { throw .isNil() }
            try self.init(wrapped, depth: depth)
        case let array as [Any]: try self.init(elements: array, depth: depth)
        case let dictionary as [AnyHashable: Any]:
            try self.init(entries: dictionary.lazy.map { ($0.key.base, $0.value) }, depth: depth)
        default: throw .type(of: value)
        }
    }

    private init(_ number: NSNumber) {
        if Swift.type(of: number) == Self.booleanType {
            self = .boolean(number.boolValue)
            return
        }
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "d"), UInt8(ascii: "f"):
            self = .real(Self.canonical(number.doubleValue))
        case UInt8(ascii: "Q"): self.init(unsigned: number.uint64Value)
        default: self = .integer(number.int64Value)
        }
    }

    /// By its digits, because `NSDecimalNumber.doubleValue` is not always the nearest real.
    private init(_ decimal: Decimal) {
        self = .real(Self.canonical(Double(decimal.description) ?? .nan))
    }

    /// An `NSNumber` of a Bool and one of 1 both print "1"; their classes differ.
    private static let booleanType: NSNumber.Type = Swift.type(of: NSNumber(value: true))

    private init(_ integer: any BinaryInteger) throws(UnsupportedValue) {
        if let signed = Int64(exactly: integer) {
            self = .integer(signed)
        } else if let unsigned = UInt64(exactly: integer) {
            self = .unsigned(unsigned)
        } else {
            throw UnsupportedValue("an integer must lie between Int64.min and UInt64.max")
        }
    }

    private init(elements: some Sequence, depth: Int) throws(UnsupportedValue) {
        var values: [PropertyListValue] = []
        values.reserveCapacity(elements.underestimatedCount)
        for element in elements {
            do { values.append(try PropertyListValue(element, depth: depth + 1)) } catch {
                throw error.within(index: values.count)
            }
        }
        self = .array(values)
    }

    private init(
        entries: some Sequence<(key: Any, value: Any)>, depth: Int
    ) throws(UnsupportedValue) {
        var values: [ExactString: PropertyListValue] = [:]
        values.reserveCapacity(entries.underestimatedCount)
        for (key, value) in entries {
            guard let key = key as? String ?? (key as? Substring).map(String.init) else {
                throw .key(key)
            }
            do { values[ExactString(key)] = try PropertyListValue(value, depth: depth + 1) } catch {
                throw error.within(key: key)
            }
        }
        self = .dictionary(values)
    }
}

extension UnsupportedValue {
    static func type(of value: Any) -> Self {
        let name = "\(Swift.type(of: value))"
        // Foundation's private name for it means nothing to people.
        if name.contains("KeyedArchiverUID") { return .archiveReference }
        return UnsupportedValue("a \(name) is not a property-list value")
    }

    fileprivate static func key(_ key: Any) -> Self {
        UnsupportedValue("the keys of a dictionary must be strings, not \(Swift.type(of: key))")
    }
}

/// An optional of any type inside an `Any`.
private protocol AnyOptional {
    var anyWrapped: Any? { get }
}

extension Optional: AnyOptional {
    var anyWrapped: Any? { self }
}
