// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import SwiftProtobuf
internal import Synchronization

/// Counts the elements that decoding a message would make, before it is decoded, because two bytes
/// can become an object of a hundred. Takes one pass and no memory.
struct ElementCount {
    private let bytes: UnsafeRawBufferPointer
    private(set) var rest: Int

    private init(_ bytes: UnsafeRawBufferPointer, max: Int) {
        self.bytes = bytes
        rest = max
    }

    static func fits<M: Message>(
        _ bytes: UnsafeRawBufferPointer, _ format: WireFormat, _ type: M.Type, max: Int
    ) -> Bool {
        var count = ElementCount(bytes, max: max)
        switch format {
        case .json: count.countJSON()
        case .protobuf: count.countFields(MessageFields.table(of: type))
        }
        return count.rest >= 0
    }

    // MARK: - JSON

    private mutating func countJSON() {
        var texts = JSONTexts()
        for byte in bytes where !texts.take(byte) {
            switch byte {
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
    private mutating func countFields(_ table: [UInt8]) {
        var open: [(type: UInt8, end: Int)] = [(MessageFields.root, bytes.count)]
        var offset = 0
        while let (type, end) = open.last {
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
                let inner = MessageFields.type(in: field.number, of: type, table)
                if inner > 0 { open.append((inner, offset + length)) } else { offset += length }
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

/// Follows the texts in JSON, so that no character of theirs is taken for a bracket or a comma.
struct JSONTexts {
    /// Whether a text has begun that has not ended.
    private(set) var isOpen = false
    private var isEscaped = false

    /// - Returns: Whether the byte belongs to a text, as its quotation marks do.
    mutating func take(_ byte: UInt8) -> Bool {
        guard isOpen else {
            isOpen = byte == UInt8(ascii: "\"")
            return isOpen
        }
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
            isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            isOpen = false
        }
        return true
    }
}

/// The fields of messages that are messages themselves. The generated code is asked which: a message
/// is decoded that has one field without content, and visited.
private struct MessageFields: Visitor {
    /// No field of the protocol has a higher number. The tag of such a field is one byte.
    private static let fieldsMax = 15
    private static let tables = Mutex<[ObjectIdentifier: [UInt8]]>([:])

    /// The number of the outermost type of a table.
    static let root: UInt8 = 1

    /// The numbers of the types in each field of each type; 0 for a field that is not a message.
    static func table<M: Message>(of type: M.Type) -> [UInt8] {
        let name = ObjectIdentifier(type)
        return tables.withLock { tables in
            if let table = tables[name] { return table }
            let table = make(of: type)
            tables[name] = table
            return table
        }
    }

    static func type(in field: UInt64, of type: UInt8, _ table: [UInt8]) -> UInt8 {
        field > fieldsMax ? 0 : table[Int(type - root) * (fieldsMax + 1) + Int(field)]
    }

    private static func make(of outermost: any Message.Type) -> [UInt8] {
        var types: [any Message.Type] = [outermost]
        var table: [UInt8] = []
        var next = 0
        while next < types.count {
            for field in 0...fieldsMax {
                guard let inner = message(in: field, of: types[next]) else {
                    table.append(0)
                    continue
                }
                let number = types.firstIndex { $0 == inner } ?? types.count
                if number == types.count { types.append(inner) }
                table.append(root + UInt8(number))
            }
            next += 1
        }
        return table
    }

    private static func message(in field: Int, of type: any Message.Type) -> (any Message.Type)? {
        let bytes = [UInt8(field) << 3 | 2, 0]
        var fields = MessageFields()
        try? type.init(serializedBytes: bytes).traverse(visitor: &fields)
        return fields.message
    }

    private var message: (any Message.Type)?

    mutating func visitSingularMessageField<M: Message>(value: M, fieldNumber: Int) {
        message = M.self
    }

    func visitUnknown(bytes: Data) {}
    func visitSingularDoubleField(value: Double, fieldNumber: Int) {}
    func visitSingularInt64Field(value: Int64, fieldNumber: Int) {}
    func visitSingularUInt64Field(value: UInt64, fieldNumber: Int) {}
    func visitSingularBoolField(value: Bool, fieldNumber: Int) {}
    func visitSingularStringField(value: String, fieldNumber: Int) {}
    func visitSingularBytesField(value: Data, fieldNumber: Int) {}
    func visitSingularEnumField<E: Enum>(value: E, fieldNumber: Int) {}
    func visitMapField<KeyType, ValueType: MapValueType>(
        fieldType: _ProtobufMap<KeyType, ValueType>.Type,
        value: _ProtobufMap<KeyType, ValueType>.BaseType, fieldNumber: Int
    ) {}
    func visitMapField<KeyType, ValueType>(
        fieldType: _ProtobufEnumMap<KeyType, ValueType>.Type,
        value: _ProtobufEnumMap<KeyType, ValueType>.BaseType, fieldNumber: Int
    ) {}
    func visitMapField<KeyType, ValueType>(
        fieldType: _ProtobufMessageMap<KeyType, ValueType>.Type,
        value: _ProtobufMessageMap<KeyType, ValueType>.BaseType, fieldNumber: Int
    ) {}
}
