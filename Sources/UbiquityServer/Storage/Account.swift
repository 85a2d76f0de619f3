// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

struct Account: Hashable, Sendable {
    var id: AccountID
    var name: AccountName
    /// The server's milliseconds since 1970.
    var createdMilliseconds: Int64
    var limits = AccountLimits()
    var sealing = SealingState()
}

extension Account {
    static let columns = "id, name, created, limits, sealing, reset_at"

    /// - Throws: ``StorageError/unreadable``.
    init(_ row: some ColumnReading) throws(StorageError) {
        guard let name = AccountName(try row.text(1)) else { throw .unreadable }
        self.init(
            id: try row.account(0), name: name, createdMilliseconds: try row.time(2),
            limits: try AccountLimits(stored: row.textIfAny(3)),
            sealing: try SealingState(row, 4))
    }
}

extension SealingState {
    /// - Parameter index: Of the column with its bytes, after which comes that with the time of its end.
    /// - Throws: ``StorageError/unreadable``.
    init(_ row: some ColumnReading, _ index: Int) throws(StorageError) {
        let bytes = row.isNull(index) ? nil : Array(try row.bytes(index))
        let ends = row.isNull(index + 1) ? nil : try row.time(index + 1)
        guard let state = SealingState(bytes: bytes, ends: ends) else { throw .unreadable }
        self = state
    }

    /// Gives the bytes of the generation of an account, or null, for ``generation(_:_:)``.
    static let generationColumn = "substr(sealing, 1, \(generationBytes))"
    /// Gives the check of an account's key while a reset is announced, or null.
    static let announcedCheckColumn = """
        CASE WHEN reset_at IS NULL THEN NULL
        ELSE substr(sealing, \(generationBytes + 1), \(Bytes32.count)) END
        """

    /// The generation in such a column; 0 for null.
    /// - Throws: ``StorageError/unreadable``.
    static func generation(_ row: some ColumnReading, _ index: Int) throws(StorageError) -> UInt32 {
        guard !row.isNull(index) else { return 0 }
        let bytes = try row.bytes(index)
        guard bytes.count == 4 else { throw .unreadable }
        return bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }
}

extension AccountLimits {
    /// - Parameter text: Nil for none.
    /// - Throws: ``StorageError/unreadable``.
    init(stored text: String?) throws(StorageError) {
        guard let limits = AccountLimits(text ?? "") else { throw .unreadable }
        self = limits
    }
}

extension AuditEvent {
    init(_ limits: AccountLimits, of account: AccountID, by actor: AuditActor) {
        self.init(
            .limitChanged, of: account, by: actor, detail: limits.text ?? "as the server is set")
    }

    /// The changes of a server's limits, sorted by name. A limit that was not known has not changed.
    static func changes(
        of known: [String: String], to limits: [String: String]
    ) -> [AuditEvent] {
        limits.sorted { $0.key < $1.key }.compactMap { name, value in
            guard let old = known[name], old != value else { return nil }
            return AuditEvent(
                .limitChanged, by: .operatorLocally, detail: "\(name) from \(old) to \(value)")
        }
    }
}

/// The name of an account, unique on a server: 1 to 128 bytes without control characters, and
/// without leading or trailing blanks.
package struct AccountName: Hashable, Sendable, CustomStringConvertible {
    package let string: String
    package static let bytesMax = 128
    package static let rule = "an account name \(form)"
    static let form =
        "has 1 to \(bytesMax) bytes, no control characters, and no spaces at either end"

    /// Fails for any other text.
    package init?(_ text: String) {
        guard (1...Self.bytesMax).contains(text.utf8.count),
            !text.hasControls,
            text.trimmingCharacters(in: .whitespaces) == text
        else { return nil }
        string = text
    }

    package var description: String { string }
}
