// SPDX-License-Identifier: Apache-2.0

package import Foundation
package import UbiquityCore

/// A property list with a dictionary as its root, in which programs keep their settings.
///
/// Both of Foundation's formats can be read and written. XML dates only have whole seconds; the
/// binary format keeps the full date.
package enum PropertyListFile {
    package enum Form: Sendable { case xml, binary }

    /// Far more than a store's values need in either format.
    package static let bytesMax = 64 << 20
    /// The maximum for XML or another text format. Foundation makes an object of each text, and
    /// several of its characters.
    private static let textBytesMax = 32 << 20
    private static let elementsMax = 1 << 20

    /// One entry of a file: its key, and its value or the reason it cannot be stored.
    package struct Entry: Sendable {
        package var key: String
        package var value: Result<PropertyListValue, UnsupportedValue>

        package init(key: String, value: Result<PropertyListValue, UnsupportedValue>) {
            self.key = key
            self.value = value
        }
    }

    /// The entries, sorted by key.
    /// - Throws: ``PropertyListFileError`` that names the file.
    package static func read(path: String) throws(PropertyListFileError) -> [Entry] {
        let data: Data?
        do {
            let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            data = try handle.read(upToCount: bytesMax + 1)
        } catch { throw .unreadable(name: path, cause: error.localizedDescription) }
        return try read(data ?? Data(), name: path)
    }

    /// - Parameter name: The name of the data in error messages.
    /// - Throws: ``PropertyListFileError``.
    package static func read(
        _ data: Data, name: String = "the input"
    ) throws(PropertyListFileError) -> [Entry] {
        let root: Any
        do { root = try self.root(of: data) } catch {
            throw .noPropertyList(name: name, cause: cause(of: error))
        }
        guard let dictionary = root as? [String: Any] else {
            throw .rootIsNoDictionary(name: name, root: kind(of: root))
        }
        return dictionary.sorted { $0.key < $1.key }.map { key, value in
            Entry(key: key, value: Result { () throws(UnsupportedValue) in try .init(value) })
        }
    }

    /// The root of a property list in any format, as Foundation objects.
    /// - Throws: ``UnsupportedValue`` for one that Foundation must not read, or Foundation's error.
    package static func root(of data: Data) throws -> Any {
        guard data.count <= bytesMax else {
            throw UnsupportedValue("it has more than \(bytesMax >> 20) MB")
        }
        if !data.starts(with: "bplist".utf8) { try checkText(data) }
        try BinaryPropertyList.check(data)
        return try PropertyListSerialization.propertyList(from: data, options: [], format: nil)
    }

    /// Limits the number of objects that a text would become. Counts the characters that begin or
    /// separate elements.
    private static func checkText(_ data: Data) throws(UnsupportedValue) {
        guard data.count <= textBytesMax else {
            throw UnsupportedValue("it has more than \(textBytesMax >> 20) MB of text")
        }
        let isXML = data.first { $0 > 0x20 && $0 < 0x7F } == UInt8(ascii: "<")
        let marks = Set((isXML ? "<" : "<({,;=").utf8)
        var isMark = [Bool](repeating: false, count: 256)
        for mark in marks { isMark[Int(mark)] = true }
        let count = data.withUnsafeBytes { bytes in
            bytes.reduce(0) { $0 + (isMark[Int($1)] ? 1 : 0) }
        }
        guard count <= elementsMax else {
            throw UnsupportedValue("it has more than \(elementsMax) elements")
        }
    }

    /// - Throws: ``PropertyListFileError`` if Foundation cannot write it, or would lose a key.
    package static func data(
        of values: [Key: PropertyListValue], form: Form
    ) throws(PropertyListFileError) -> Data {
        let entries = values.map { (ExactString($0.key.string), $0.value) }
        if let key = foldedKey(in: .dictionary(Dictionary(entries) { first, _ in first })) {
            throw .keysFold(key)
        }
        let root = NSMutableDictionary(capacity: values.count)
        for (key, value) in values { root.setObject(value.boxed, forKey: key.string as NSString) }
        do {
            return try PropertyListSerialization.data(
                fromPropertyList: root, format: form == .xml ? .xml : .binary, options: 0)
        } catch { throw .noPropertyList(name: "the output", cause: cause(of: error)) }
    }

    /// A key that differs from another of its dictionary only in Unicode normalisation, which are
    /// equal in Foundation's dictionaries. Nil if there is none.
    private static func foldedKey(in value: PropertyListValue) -> String? {
        switch value {
        case .array(let values): return values.lazy.compactMap(foldedKey).first
        case .dictionary(let entries):
            var seen: Set<String> = []
            for key in entries.keys where !seen.insert(key.string).inserted { return key.string }
            return entries.values.lazy.compactMap(foldedKey).first
        case .string, .boolean, .integer, .unsigned, .real, .date, .data: return nil
        }
    }

    private static func cause(of error: any Error) -> String {
        if let error = error as? UnsupportedValue { return error.description }
        let error = error as NSError
        return error.userInfo["NSDebugDescription"] as? String ?? error.localizedDescription
    }

    private static func kind(of root: Any) -> String {
        switch try? PropertyListValue(root) {
        case .string: "a string"
        case .boolean: "a Boolean"
        case .integer, .unsigned, .real: "a number"
        case .date: "a date"
        case .data: "data"
        case .array: "an array"
        case .dictionary: "a dictionary with keys that are no strings"
        case nil: "something else"
        }
    }
}

/// The reason no entries can be read from or written to a file.
package enum PropertyListFileError: Error, Hashable, Sendable {
    case unreadable(name: String, cause: String)
    case noPropertyList(name: String, cause: String)
    case rootIsNoDictionary(name: String, root: String)
    /// Two keys that are equal to Foundation.
    case keysFold(String)
}

extension PropertyListFileError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreadable(let name, let cause): "\(name) cannot be read: \(cause)"
        case .noPropertyList(let name, let cause): "\(name) is no property list: \(cause)"
        case .keysFold(let key):
            "two keys look like \"\(key)\" and differ in Unicode normalisation only; a property "
                + "list file would have one of them, so remove or rename one first"
        case .rootIsNoDictionary(let name, let root):
            "\(name) is a property list whose root is \(root); it must be a dictionary"
        }
    }
}
