// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Counts the elements that decoding a message would make, before it is decoded, because two bytes
/// can become an object of a hundred. Takes one pass and no memory.
struct ElementCount {
    private let bytes: UnsafeRawBufferPointer
    private(set) var rest: Int

    private init(_ bytes: UnsafeRawBufferPointer, max: Int) {
        self.bytes = bytes
        rest = max
    }

    static func fits(
        _ bytes: UnsafeRawBufferPointer, _ format: WireFormat, _ shape: MessageShape, max: Int
    ) -> Bool {
        var count = ElementCount(bytes, max: max)
        switch format {
        case .json: count.countJSON()
        case .protobuf: count.countFields(shape)
        }
        return count.rest >= 0
    }

    // MARK: - JSON

    private mutating func countJSON() {
        var isText = false
        var isEscaped = false
        for byte in bytes {
            if isText {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isText = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isText = true
            case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: ","):
                rest -= 1
                if rest < 0 { return }
            default: break
            }
        }
    }

    // MARK: - The binary format

    /// Goes through nested messages with a list of their ends instead of recursion, because values
    /// nest deeply, and invalid bytes may nest without limit. Where a field is invalid, the count
    /// continues after the message around it, because a decoder may skip that unread, as a part of
    /// a group or an unknown field.
    private mutating func countFields(_ shape: MessageShape) {
        var open: [(shape: MessageShape, end: Int)] = [(shape, bytes.count)]
        var offset = 0
        while let (shape, end) = open.last {
            guard offset < end else {
                offset = end
                open.removeLast()
                continue
            }
            rest -= 1
            guard rest >= 0 else { return }
            guard let field = field(&offset, end) else {
                offset = end
                continue
            }
            if let length = field.length {
                if let inner = shape.message(in: field.number) {
                    open.append((inner, offset + length))
                } else {
                    offset += length
                }
            }
        }
    }

    /// Reads a field up to its content if that has a length, and else to its end.
    /// - Returns: Nil if the field is invalid.
    private func field(_ offset: inout Int, _ end: Int) -> (number: UInt64, length: Int?)? {
        guard let tag = number(&offset, end) else { return nil }
        switch tag & 7 {
        case 0: guard number(&offset, end) != nil else { return nil }
        case 1: offset += 8
        case 2:
            guard let length = number(&offset, end), length <= UInt64(end - offset)
            else { return nil }
            return (tag >> 3, Int(length))
        // The bounds of a group. None of our messages has one, and a decoder skips it.
        case 3, 4: break
        case 5: offset += 4
        default: return nil
        }
        return (tag >> 3, nil)
    }

    /// Returns nil if the number is cut off or too long.
    private func number(_ offset: inout Int, _ end: Int) -> UInt64? {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard offset < end else { return nil }
            let byte = bytes[offset]
            offset += 1
            number |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }
}

/// Tells which fields of a message are messages.
package enum MessageShape: Sendable {
    case value, array, dictionary, entry, record
    case changes
    case push, transaction
    case pushAnswer, transactionResult, committed, writeResult
    case history, version, ended, snapshot
    /// Fields 1 to 3 may be lists of messages without nested ones.
    case list
    /// No nested messages.
    case fields

    func message(in field: UInt64) -> MessageShape? {
        switch (self, field) {
        case (.value, 8): .array
        case (.value, 9): .dictionary
        case (.array, 1), (.entry, 2), (.record, 2): .value
        case (.dictionary, 1): .entry
        case (.changes, 1), (.transaction, 1), (.writeResult, 2), (.version, 1), (.snapshot, 1):
            .record
        case (.push, 1): .transaction
        case (.record, 9), (.ended, 3): .fields
        case (.pushAnswer, 3): .transactionResult
        case (.transactionResult, 1): .committed
        case (.transactionResult, 2): .fields
        case (.committed, 1): .writeResult
        case (.history, 1): .version
        case (.version, 5...6): .ended
        case (.list, 1...3): .fields
        default: nil
        }
    }
}
