// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Reads the columns of a row as what they must be. Every call throws ``StorageError/unreadable``.
protocol ColumnReading {
    func integer(_ index: Int) throws(StorageError) -> Int64
    func isNull(_ index: Int) -> Bool
    /// Nil for null.
    func textIfAny(_ index: Int) throws(StorageError) -> String?
    func bytes(_ index: Int) throws(StorageError) -> Data
}

extension ColumnReading {
    func account(_ index: Int) throws(StorageError) -> AccountID {
        guard let account = try textIfAny(index).flatMap({ AccountID($0) }) else {
            throw .unreadable
        }
        return account
    }

    func store(_ index: Int) throws(StorageError) -> StoreIdentifier {
        guard let text = try textIfAny(index) else { throw .unreadable }
        do { return try StoreIdentifier(text) } catch { throw .unreadable }
    }

    /// A time or a duration. The sum of two does not overflow.
    func time(_ index: Int) throws(StorageError) -> Int64 {
        let time = try integer(index)
        guard time.magnitude <= 1 << 61 else { throw .unreadable }
        return time
    }

    /// A number of things: at least 0, and small enough to add to.
    func count(_ index: Int) throws(StorageError) -> Int {
        let count = try time(index)
        guard count >= 0 else { throw .unreadable }
        return Int(count)
    }

    func revision(_ index: Int) throws(StorageError) -> Int64 { Int64(try count(index)) }

    func timestamp(_ index: Int) throws(StorageError) -> HybridTimestamp {
        HybridTimestamp(rawValue: try bits(index))
    }

    func device(_ index: Int) throws(StorageError) -> DeviceID {
        DeviceID(rawValue: try bits(index))
    }

    /// A number that is unsigned in the program.
    func bits(_ index: Int) throws(StorageError) -> UInt64 {
        UInt64(bitPattern: try integer(index))
    }
}
