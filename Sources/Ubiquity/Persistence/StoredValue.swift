// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore
internal import UbiquityWire

/// The stored form of a value: the protocol's message in its binary format.
enum StoredValue {
    static func encode(_ value: PropertyListValue) -> Data {
        Data(WireFormat.protobuf.encode(WireValue(value)))
    }

    static func decode(_ bytes: Data, _ key: Key) throws -> PropertyListValue {
        do { return try PropertyListValue(protobuf: bytes) } catch {
            throw damage("the value of \"\(key)\" cannot be read: \(error)")
        }
    }

    static func damage(_ sentence: String) -> DatabaseError {
        DatabaseError(resultCode: .SQLITE_CORRUPT, message: sentence)
    }
}
