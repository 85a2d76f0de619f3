// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore
internal import UbiquityWire

/// Messages with a value that nests as deeply as one may, made by hand: not every thread has the
/// stack to encode one.
enum DeepestValue {
    static func push(_ format: WireFormat) -> [UInt8] {
        switch format {
        case .json: Array("{\"transactions\":[{\"writes\":[\(recordText)]}]}".utf8)
        case .protobuf: field(1, field(1, recordBytes))
        }
    }

    static func changes(_ format: WireFormat) -> [UInt8] {
        let cursor = Samples.cursor.text
        return switch format {
        case .json: Array("{\"records\":[\(recordText)],\"cursor\":\"\(cursor)\"}".utf8)
        case .protobuf: field(1, recordBytes) + field(2, Array(cursor.utf8))
        }
    }

    private static let containers = PropertyListValue.depthMax - 1

    private static var recordText: String {
        let value =
            String(repeating: "{\"array\":{\"values\":[", count: containers) + "{\"integer\":\"1\"}"
            + String(repeating: "]}}", count: containers)
        return "{\"key\":\"k\",\"value\":\(value),\"milliseconds\":\"\(Samples.milliseconds)\","
            + "\"device\":\"\(Samples.device)\"}"
    }

    private static var recordBytes: [UInt8] {
        // The integer 1, in an array, in an array.
        let value = (0..<containers).reduce([0x18, 0x02]) { value, _ in field(8, field(1, value)) }
        return field(1, Array("k".utf8)) + field(2, value)
            + [0x20] + number(UInt64(Samples.milliseconds))
            + field(6, Array(Samples.device.description.utf8))
    }

    /// A field of protobuf that has a length.
    private static func field(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        [tag << 3 | 2] + number(UInt64(content.count)) + content
    }

    private static func number(_ value: UInt64) -> [UInt8] {
        value < 0x80
            ? [UInt8(value)] : [UInt8(truncatingIfNeeded: value) | 0x80] + number(value >> 7)
    }
}
