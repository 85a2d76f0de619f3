// SPDX-License-Identifier: Apache-2.0

package import Foundation
package import UbiquityCore

/// Reads a property list with a dictionary as its root, in which programs keep their settings, or
/// a JSON object.
package enum PropertyListFile {
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
            data = try handle.read(upToCount: PropertyList.bytesMax + 1)
        } catch { throw .unreadable(name: path, cause: error.localizedDescription) }
        return try read(data ?? Data(), name: path)
    }

    /// - Parameters:
    ///   - name: The name of the data in error messages.
    ///   - takesJSON: Whether it may be a JSON object, in the exact form or plain.
    /// - Throws: ``PropertyListFileError``.
    package static func read(
        _ data: Data, name: String = "the input", takesJSON: Bool = false
    ) throws(PropertyListFileError) -> [Entry] {
        var entries: [Entry] = []
        let bytes = [UInt8](data)
        let isJSON = takesJSON && JSONValues.isJSON(bytes)
        let root: PropertyListValue
        func note(_ key: ExactString, _ value: UnsupportedValue) {
            entries.append(Entry(key: key.string, value: .failure(value)))
        }
        do throws(PropertyListError) {
            root =
                isJSON
                ? try JSONValues.decode(bytes, unsupported: note)
                : try PropertyList.decode(
                    bytes, depthMax: PropertyListValue.depthMax + 1, unsupported: note)
        } catch {
            let cause = error.description
            throw isJSON
                ? .noJSON(name: name, cause: cause) : .noPropertyList(name: name, cause: cause)
        }
        guard case .dictionary(let values) = root else {
            throw isJSON
                ? .noJSON(name: name, cause: "it must be an object, with a key for each value")
                : .rootIsNoDictionary(name: name, root: root.kind)
        }
        if isJSON, case .string(let format)? = values["format"],
            format.string.hasPrefix("ubiquity-account-")
        {
            throw .noJSON(
                name: name,
                cause:
                    "it is the export of an account, and was changed since: that begins with its "
                    + "\"format\"")
        }
        entries += values.map { Entry(key: $0.key.string, value: .success($0.value)) }
        return entries.sorted { $0.key < $1.key }
    }
}

/// The reason no entries can be read from a file.
package enum PropertyListFileError: Error, Hashable, Sendable {
    case unreadable(name: String, cause: String)
    case noPropertyList(name: String, cause: String)
    case noJSON(name: String, cause: String)
    case rootIsNoDictionary(name: String, root: String)
}

extension PropertyListFileError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreadable(let name, let cause): "\(name) cannot be read: \(cause)"
        case .noPropertyList(let name, let cause): "\(name) is not a property list: \(cause)"
        case .noJSON(let name, let cause): "\(name) is not JSON with values: \(cause)"
        case .rootIsNoDictionary(let name, let root):
            "\(name) is a property list whose root is \(root); it must be a dictionary"
        }
    }
}
