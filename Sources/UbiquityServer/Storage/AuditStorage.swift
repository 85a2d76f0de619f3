// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The audit log. A part of the contract of ``ServerStorage``.
protocol AuditStorage: Sendable {
    /// The newest first.
    /// - Parameter number: Selects entries before this one; nil for all.
    func auditEntries(
        before number: Int64?, _ filter: AuditFilter, max: Int
    ) throws(StorageError) -> [AuditEntry]
    /// Adds entries that no other call records: exports, failed sign-ins, a restore.
    func record(_ entries: [AuditEntry]) throws(StorageError)
    /// Records which limits differ from those of the last call, and stores them for the next one.
    /// The first call records none.
    func recordChanges(ofLimits limits: [String: String], now: Int64) throws(StorageError)
    /// The numbers of the entries in excess of the maximum, the least valuable first. May take as
    /// long as reading the whole log.
    func auditSurplus(by rule: AuditRule) throws(StorageError) -> [Int64]
    func removeAuditEntries(_ numbers: [Int64]) throws(StorageError)
}
