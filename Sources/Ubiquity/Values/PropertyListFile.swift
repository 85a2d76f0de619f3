// SPDX-License-Identifier: Apache-2.0

package import Foundation
package import UbiquityCore

/// Reads a property list with a dictionary as its root, in which programs keep their settings, in
/// any of Foundation's formats.
package enum PropertyListFile {
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
        var entries: [Entry] = []
        let root: PropertyListValue
        do throws(PropertyListError) {
            root = try value(of: data, depthMax: PropertyListValue.depthMax + 1) { key, value in
                entries.append(Entry(key: key.string, value: .failure(value)))
            }
        } catch { throw .noPropertyList(name: name, cause: error.description) }
        guard case .dictionary(let values) = root else {
            throw .rootIsNoDictionary(name: name, root: root.kind)
        }
        entries += values.map { Entry(key: $0.key.string, value: .success($0.value)) }
        return entries.sorted { $0.key < $1.key }
    }

    /// The root of a property list in any format. The binary format is read exactly, see
    /// ``BinaryPropertyList``, and the others by Foundation.
    /// - Parameter unsupported: As for ``BinaryPropertyList/decode(_:depthMax:unsupported:)``.
    package static func value(
        of data: Data, depthMax: Int = PropertyListValue.depthMax,
        unsupported: ((ExactString, UnsupportedValue) -> Void)? = nil
    ) throws(PropertyListError) -> PropertyListValue {
        guard data.count <= bytesMax else {
            throw .unreadable("it has more than \(bytesMax >> 20) MB")
        }
        if BinaryPropertyList.isBinary(data) {
            return try BinaryPropertyList.decode(
                [UInt8](data), depthMax: depthMax, unsupported: unsupported)
        }
        let root = try textRoot(of: data)
        do throws(UnsupportedValue) {
            guard let unsupported, let dictionary = root as? [String: Any] else {
                return try PropertyListValue(root)
            }
            var values: [ExactString: PropertyListValue] = [:]
            for (key, value) in dictionary {
                do throws(UnsupportedValue) {
                    values[ExactString(key)] = try PropertyListValue(value)
                } catch { unsupported(ExactString(key), error) }
            }
            return .dictionary(values)
        } catch { throw .unsupported(error) }
    }

    private static func textRoot(of data: Data) throws(PropertyListError) -> Any {
        try checkText(data)
        do {
            return try PropertyListSerialization.propertyList(
                from: data, options: [], format: nil)
        } catch {
            let error = error as NSError
            throw .unreadable(
                error.userInfo["NSDebugDescription"] as? String ?? error.localizedDescription)
        }
    }

    /// Limits the number of objects that a text would become. Counts the characters that begin or
    /// separate elements.
    private static func checkText(_ data: Data) throws(PropertyListError) {
        guard data.count <= textBytesMax else {
            throw .unreadable("it has more than \(textBytesMax >> 20) MB of text")
        }
        let isXML = data.first { $0 > 0x20 && $0 < 0x7F } == UInt8(ascii: "<")
        var isMark = [Bool](repeating: false, count: 256)
        for mark in (isXML ? "<" : "<({,;=").utf8 { isMark[Int(mark)] = true }
        let count = data.withUnsafeBytes { bytes in
            bytes.reduce(0) { $0 + (isMark[Int($1)] ? 1 : 0) }
        }
        guard count <= elementsMax else {
            throw .unreadable("it has more than \(elementsMax) elements")
        }
    }
}

/// The reason no entries can be read from a file.
package enum PropertyListFileError: Error, Hashable, Sendable {
    case unreadable(name: String, cause: String)
    case noPropertyList(name: String, cause: String)
    case rootIsNoDictionary(name: String, root: String)
}

extension PropertyListFileError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreadable(let name, let cause): "\(name) cannot be read: \(cause)"
        case .noPropertyList(let name, let cause): "\(name) is not a property list: \(cause)"
        case .rootIsNoDictionary(let name, let root):
            "\(name) is a property list whose root is \(root); it must be a dictionary"
        }
    }
}
