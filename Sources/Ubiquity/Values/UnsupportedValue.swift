// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The reason a value cannot be stored: a leaf or a container in it is not a property list.
package struct UnsupportedValue: Error, Hashable, Sendable {
    /// The problem, such as "a URL is no property-list value".
    package var reason: String
    /// The place in the value, such as `[3].url`; empty for the value itself.
    package var path: String

    package init(_ reason: String, path: String = "") {
        self.reason = reason
        self.path = path
    }

    func within(index: Int) -> Self { UnsupportedValue(reason, path: "[\(index)]" + path) }

    func within(key: String) -> Self { UnsupportedValue(reason, path: ".\(key)" + path) }

    static let tooDeep = UnsupportedValue(PropertyListValue.depthRule)

    static func isNil() -> Self { UnsupportedValue("nil is no property-list value") }

    static func type(of value: Any) -> Self {
        let name = "\(Swift.type(of: value))"
        // Foundation's private name for it means nothing to people.
        let isReference = name.contains("KeyedArchiverUID")
        return UnsupportedValue(
            "a \(isReference ? "reference of a keyed archive" : name) is no property-list value")
    }

    static func key(_ key: Any) -> Self {
        UnsupportedValue("the keys of a dictionary must be strings, not \(Swift.type(of: key))")
    }

    /// The same as ``description``, with the key before the path: `bookmarks[3].url: a URL is no
    /// property-list value`.
    package func description(forKey key: String) -> String { "\(key)\(path): \(reason)" }
}

extension UnsupportedValue: CustomStringConvertible {
    package var description: String { path.isEmpty ? reason : "\(path): \(reason)" }
}
