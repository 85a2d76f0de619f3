// SPDX-License-Identifier: Apache-2.0

extension PropertyListValue {
    /// What the value counts towards the quota, in bytes.
    ///
    /// The payload, whatever the encoding: a string's UTF-8 bytes, a data's bytes, 8 for a number
    /// or date, 1 for a Bool; containers the sum of their leaves and the UTF-8 bytes of inner keys.
    package var payloadBytes: Int {
        switch self {
        case .string(let string): string.string.utf8.count
        case .boolean: 1
        case .integer, .unsigned, .real, .date: 8
        case .data(let bytes): bytes.count
        case .array(let values): values.reduce(0) { $0 + $1.payloadBytes }
        case .dictionary(let entries):
            entries.reduce(0) { $0 + $1.key.string.utf8.count + $1.value.payloadBytes }
        }
    }

    /// The payload, and 8 bytes for every element of an array and entry of a dictionary, at every
    /// depth: an empty string has no payload, and a million of them are no small answer.
    package var bytesWithElements: Int {
        switch self {
        case .array(let values): values.reduce(0) { $0 + 8 + $1.bytesWithElements }
        case .dictionary(let entries):
            entries.reduce(0) { $0 + 8 + $1.key.string.utf8.count + $1.value.bytesWithElements }
        default: payloadBytes
        }
    }
}
