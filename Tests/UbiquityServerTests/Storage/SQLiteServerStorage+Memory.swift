// SPDX-License-Identifier: Apache-2.0

internal import GRDB

@testable internal import UbiquityServer

extension SQLiteServerStorage {
    /// A storage in memory with the sample's account.
    static func inMemory() throws -> SQLiteServerStorage {
        let database = try DatabaseQueue()
        try database.writeWithoutTransaction { try SQLiteSchema.migrate($0, path: "") }
        let storage = SQLiteServerStorage(database)
        try storage.makeSampleAccount()
        return storage
    }

    func execute(_ sql: String) throws {
        try database.writeWithoutTransaction { try $0.execute(sql: sql) }
    }
}
