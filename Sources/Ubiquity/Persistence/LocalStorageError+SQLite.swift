// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension LocalStorageError {
    /// Translates an error of the database for people.
    init(_ error: any Error, path: String) {
        switch error {
        case let error as LocalStorageError: self = error
        case let error as DatabaseError:
            let cause = "SQLite: \(error.message ?? "error \(error.extendedResultCode)")"
            self.init(Self.reason(of: error), path: path, cause: cause)
        // A column has a type that this library never writes.
        case let error as RowDecodingError: self.init(.damaged, path: path, cause: "\(error)")
        default: self.init(.failed, path: path, cause: "\(error)")
        }
    }

    private static func reason(of error: DatabaseError) -> Reason {
        switch error.resultCode {
        case .SQLITE_CORRUPT: .damaged
        case .SQLITE_NOTADB: .foreign
        case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH: .notWritable
        case .SQLITE_FULL: .diskFull
        case .SQLITE_BUSY, .SQLITE_LOCKED: .busy
        // A table or column that this library created is missing.
        case .SQLITE_ERROR where error.message?.hasPrefix("no such") == true: .damaged
        default: .failed
        }
    }
}
