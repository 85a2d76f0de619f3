// SPDX-License-Identifier: Apache-2.0

/// A key that was pressed.
public enum Key: Hashable, Sendable {
    case character(Character)
    case enter, tab, escape, backspace, up, down, left, right
    /// Ctrl-C, or the end of the input.
    case interrupt
}

/// Makes keys of the bytes that a terminal sends, in whatever pieces they come.
public struct KeyReader: Sendable {
    private var rest: [UInt8] = []

    /// At the beginning of the input.
    public init() {}

    /// The keys that are complete. What no key is is left out.
    public mutating func keys(in bytes: some Sequence<UInt8>) -> [Key] {
        rest += bytes
        var keys: [Key] = []
        while let length = lengthOfFirst {
            if let key = Self.key(rest.prefix(length)) { keys.append(key) }
            rest.removeFirst(length)
        }
        return keys
    }

    /// Nil: nothing is complete.
    private var lengthOfFirst: Int? {
        guard let first = rest.first else { return nil }
        if first == Self.escape { return lengthOfSequence }
        let length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
        return length <= rest.count ? length : nil
    }

    /// Escape alone, or with what ends in a letter or `~`, such as `[A`.
    private var lengthOfSequence: Int? {
        guard rest.count > 1, rest[1] == UInt8(ascii: "[") || rest[1] == UInt8(ascii: "O") else {
            return 1
        }
        return rest.dropFirst(2).firstIndex { (0x40...0x7E).contains($0) }.map { $0 + 1 }
    }

    private static let escape: UInt8 = 0x1B

    private static func key(_ bytes: ArraySlice<UInt8>) -> Key? {
        switch Array(bytes) {
        case [0x03], [0x04]: .interrupt
        case [0x09]: .tab
        case [0x0A], [0x0D]: .enter
        case [0x08], [0x7F]: .backspace
        case [escape]: .escape
        case let sequence where sequence[0] == escape: arrow(sequence)
        case let text where text[0] >= 0x20:
            String(validating: text, as: UTF8.self)?.first.map(Key.character)
        default: nil
        }
    }

    private static func arrow(_ sequence: [UInt8]) -> Key? {
        guard sequence.count == 3 else { return nil }
        return switch sequence[2] {
        case UInt8(ascii: "A"): .up
        case UInt8(ascii: "B"): .down
        case UInt8(ascii: "C"): .right
        case UInt8(ascii: "D"): .left
        default: nil
        }
    }
}
