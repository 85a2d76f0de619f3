// SPDX-License-Identifier: Apache-2.0

/// The reason a value cannot be stored: a leaf or a container in it is not a property list.
package struct UnsupportedValue: Error, Hashable, Sendable {
    /// The problem, such as "a URL is not a property-list value".
    package var reason: String
    /// The place in the value, such as `[3].url`; empty for the value itself.
    package var path: String
    /// The place in the file that the value is read from.
    package var place: PropertyListPlace?

    package init(_ reason: String, path: String = "", place: PropertyListPlace? = nil) {
        self.reason = reason
        self.path = path
        self.place = place
    }

    /// The reason with the place in the file.
    package var sentence: String { place.map { "\(reason) (\($0))" } ?? reason }

    /// Longer places in nested values lose their beginning.
    private static let pathBytesMax = 8_192

    package func within(index: Int) -> Self { within("[\(index)]") }

    package func within(key: String) -> Self { within(".\(key)") }

    private func within(_ place: String) -> Self {
        guard place.utf8.count + path.utf8.count <= Self.pathBytesMax else { return self }
        return UnsupportedValue(reason, path: place + path, place: self.place)
    }

    package static let tooDeep = UnsupportedValue(PropertyListValue.depthRule)

    package static func isNil() -> Self { UnsupportedValue("nil is not a property-list value") }

    package static let archiveReference = UnsupportedValue(
        "a reference of a keyed archive is not a property-list value")

    static let otherType = UnsupportedValue("it has a value that a store cannot hold")

    /// The same as ``description``, with the key before the path: `bookmarks[3].url: a URL is
    /// not a property-list value`.
    package func description(forKey key: String) -> String { "\(key)\(path): \(sentence)" }
}

extension UnsupportedValue: CustomStringConvertible {
    package var description: String { path.isEmpty ? sentence : "\(path): \(sentence)" }
}
