// SPDX-License-Identifier: Apache-2.0

extension PropertyListValue {
    /// The size that counts towards the quota, in bytes.
    ///
    /// Independent of the encoding: a string's UTF-8 bytes, a data's bytes, 8 for a number or date,
    /// 1 for a Bool. A container counts its content, the UTF-8 bytes of its keys, and 8 for every
    /// element or entry, because each takes memory even if empty.
    package var quotaBytes: Int {
        switch self {
        case .string(let string): string.string.utf8.count
        case .boolean: 1
        case .integer, .unsigned, .real, .date: 8
        case .data(let bytes): bytes.count
        case .array(let values):
            values.reduce(0) { $0 + Self.elementBytes + $1.quotaBytes }
        case .dictionary(let entries):
            entries.reduce(0) {
                $0 + Self.elementBytes + $1.key.string.utf8.count + $1.value.quotaBytes
            }
        }
    }

    private static var elementBytes: Int { 8 }
}
