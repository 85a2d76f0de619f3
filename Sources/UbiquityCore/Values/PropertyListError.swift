// SPDX-License-Identifier: Apache-2.0

/// The reason bytes are not a property list, or not JSON, that a store can hold.
package enum PropertyListError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Not well-formed, or beyond a bound, with the reason in a few words for people.
    case unreadable(String, at: PropertyListPlace? = nil)
    /// Well-formed, with a value that no store can hold.
    case unsupported(UnsupportedValue)

    package var description: String {
        switch self {
        case .unreadable(let reason, let place): place.map { "\(reason) (\($0))" } ?? reason
        case .unsupported(let value): value.description
        }
    }

    /// Adds the place of the container to an unsupported value in it.
    func within(_ place: (UnsupportedValue) -> UnsupportedValue) -> Self {
        if case .unsupported(let value) = self { .unsupported(place(value)) } else { self }
    }
}

/// A place in a file.
package enum PropertyListPlace: Hashable, Sendable, CustomStringConvertible {
    /// In a text. Both are counted from 1, the column in Unicode scalars.
    case line(Int, column: Int)
    /// In a binary file, counted from 0.
    case byte(Int)

    package var description: String {
        switch self {
        case .line(let line, let column): "line \(line), column \(column)"
        case .byte(let offset): "byte \(offset)"
        }
    }
}

/// Counts the lines of a text up to offsets that are asked for in ascending order.
struct PlaceFinder {
    private let bytes: [UInt8]
    private var offset = 0
    private var (line, column) = (1, 1)

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// - Complexity: O(*n*) in the distance from the last offset; from the beginning if it is behind.
    mutating func place(_ target: Int) -> PropertyListPlace {
        if target < offset { (offset, line, column) = (0, 1, 1) }
        while offset < min(target, bytes.count) {
            let byte = bytes[offset]
            offset += 1
            let isReturn = byte == 0x0D && (offset == bytes.count || bytes[offset] != 0x0A)
            if byte == 0x0A || isReturn {
                (line, column) = (line + 1, 1)
            } else if byte & 0xC0 != 0x80 {
                column += 1
            }
        }
        return .line(line, column: column)
    }
}
