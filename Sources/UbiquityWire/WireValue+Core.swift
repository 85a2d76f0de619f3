// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import SwiftProtobuf
package import UbiquityCore

extension WireValue {
    package init(_ value: PropertyListValue) {
        self.init()
        switch value {
        case .string(let string): kind = .string(string.string)
        case .boolean(let boolean): kind = .boolean(boolean)
        case .integer(let integer): kind = .integer(integer)
        case .unsigned(let unsigned): kind = .unsigned(unsigned)
        case .real(let real): kind = .real(real)
        case .date(let seconds): kind = .date(seconds)
        case .data(let bytes): kind = .data(Data(bytes))
        case .array(let values): kind = .array(.with { $0.values = values.map(WireValue.init) })
        case .dictionary(let entries): kind = .dictionary(WireDictionary(entries))
        case .sealed(let box):
            kind = .sealed(
                .with {
                    $0.generation = box.generation
                    $0.box = Data(box.bytes)
                })
        }
    }
}

extension WireDictionary {
    init(_ dictionary: [ExactString: PropertyListValue]) {
        self.init()
        entries = dictionary.sorted { $0.key < $1.key }.map { key, value in
            .with {
                $0.key = key.string
                $0.value = WireValue(value)
            }
        }
    }
}

extension PropertyListValue {
    /// - Throws: ``WireError`` for a value without a type, a dictionary with a duplicate key, a
    ///   sealed value in another one, and more levels than ``PropertyListValue/depthMax``.
    package init(_ wire: WireValue) throws(WireError) {
        try self.init(wire, depth: 1)
    }

    private init(_ wire: WireValue, depth: Int) throws(WireError) {
        guard depth <= Self.depthMax else {
            throw WireError(Self.depthRule)
        }
        switch wire.kind {
        case nil: throw WireError("a value has no type")
        case .string(let string): self = .string(string)
        case .boolean(let boolean): self = .boolean(boolean)
        case .integer(let integer): self = .integer(integer)
        case .unsigned(let unsigned): self.init(unsigned: unsigned)
        case .real(let real): self = .real(Self.canonical(real))
        case .date(let seconds): self = .date(Self.canonical(seconds))
        case .data(let data): self = .data([UInt8](data))
        case .array(let array):
            var values: [PropertyListValue] = []
            values.reserveCapacity(array.values.count)
            for value in array.values {
                values.append(try PropertyListValue(value, depth: depth + 1))
            }
            self = .array(values)
        case .dictionary(let dictionary):
            var entries: [ExactString: PropertyListValue] = [:]
            entries.reserveCapacity(dictionary.entries.count)
            for entry in dictionary.entries {
                let value = try PropertyListValue(entry.value, depth: depth + 1)
                guard entries.updateValue(value, forKey: ExactString(entry.key)) == nil else {
                    throw WireError("the key \"\(entry.key)\" occurs twice in one dictionary")
                }
            }
            self = .dictionary(entries)
        case .sealed(let sealed):
            guard depth == 1 else { throw WireError("a sealed value is inside of another value") }
            self = .sealed(SealedBox(generation: sealed.generation, bytes: [UInt8](sealed.box)))
        }
    }
}

extension PropertyListValue {
    /// Decodes the binary form of a message. Equivalent to decoding a ``WireValue`` first, but
    /// faster for strings.
    /// - Throws: ``WireError``, also where ``init(_:)`` does.
    package init(protobuf bytes: some SwiftProtobufContiguousBytes) throws(WireError) {
        if let string = bytes.withUnsafeBytes(Self.plainString) {
            self = .string(string)
        } else {
            try self.init(WireFormat.protobuf.decode(WireValue.self, from: bytes))
        }
    }

    /// Decodes a message that contains just a string, as most do, because opening a store waits for
    /// all of them. Nil for any other, which is left to the message's own decoder.
    private static func plainString(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard bytes.first == stringTag else { return nil }
        var length = 0
        for (index, byte) in bytes.dropFirst().prefix(lengthBytesMax).enumerated() {
            length |= Int(byte & 0x7F) << (7 * index)
            guard byte & 0x80 == 0 else { continue }
            let text = bytes.dropFirst(index + 2)
            guard text.count == length else { return nil }
            return String(validating: UnsafeRawBufferPointer(rebasing: text), as: UTF8.self)
        }
        return nil
    }

    /// Field 1, length-delimited.
    private static let stringTag: UInt8 = 1 << 3 | 2
    /// For lengths below 256 MiB.
    private static let lengthBytesMax = 4
}
