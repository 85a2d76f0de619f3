// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Reads typed columns of a row of either database. Every call throws ``StorageError/unreadable``.
protocol ColumnReading {
    func integer(_ index: Int) throws(StorageError) -> Int64
    func isNull(_ index: Int) -> Bool
    /// Nil for null.
    func textIfAny(_ index: Int) throws(StorageError) -> String?
    func bytes(_ index: Int) throws(StorageError) -> Data
}

extension ColumnReading {
    func text(_ index: Int) throws(StorageError) -> String {
        guard let text = try textIfAny(index) else { throw .unreadable }
        return text
    }

    func account(_ index: Int) throws(StorageError) -> AccountID {
        guard let account = AccountID(try text(index)) else { throw .unreadable }
        return account
    }

    func store(_ index: Int) throws(StorageError) -> StoreIdentifier {
        do { return try StoreIdentifier(try text(index)) } catch { throw .unreadable }
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

    /// The stamp in three columns: time, device, digest.
    func stamp(_ index: Int) throws(StorageError) -> Stamp {
        Stamp(try timestamp(index), try device(index + 1), digest: try bits(index + 2))
    }

    /// A number that is unsigned in the program.
    func bits(_ index: Int) throws(StorageError) -> UInt64 {
        UInt64(bitPattern: try integer(index))
    }
}

extension CredentialTerms {
    static let columns = "stores, credential_milliseconds, credential_latest"

    /// - Parameter index: The first of three columns.
    /// - Throws: ``StorageError/unreadable``.
    init(_ row: some ColumnReading, from index: Int) throws(StorageError) {
        self.init(
            stores: try StoreList.set(row.textIfAny(index)),
            milliseconds: row.isNull(index + 1) ? nil : try row.time(index + 1),
            latestMilliseconds: row.isNull(index + 2) ? nil : try row.time(index + 2))
    }
}

extension AuditRule.Line {
    /// - Throws: ``StorageError/unreadable``, as for an ``AuditEntry``.
    init(_ row: some ColumnReading) throws(StorageError) {
        guard let action = AuditAction(rawValue: try row.text(1)) else { throw .unreadable }
        self.init(
            number: try row.integer(0), action: action,
            account: row.isNull(2) ? nil : try row.account(2))
    }
}

extension AuditEntry {
    static let columns = "number, \(contentColumns)"
    static let contentColumns =
        "time, deed, account, device, actor, actor_device, last, count, detail"

    /// - Throws: ``StorageError/unreadable``, also for a row that this program would not have
    ///   written.
    init(_ row: some ColumnReading) throws(StorageError) {
        let device = row.isNull(6) ? nil : try row.device(6)
        guard let action = AuditAction(rawValue: try row.text(2)),
            let actor = AuditActor(word: try row.text(5), device: device)
        else { throw .unreadable }
        let event = AuditEvent(
            action, of: row.isNull(3) ? nil : try row.account(3),
            row.isNull(4) ? nil : try row.device(4), by: actor,
            detail: try row.textIfAny(9))
        self.init(
            number: try row.integer(0), event, at: try row.time(1),
            last: row.isNull(7) ? nil : try row.time(7), count: try row.count(8))
    }
}
