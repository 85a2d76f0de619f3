// SPDX-License-Identifier: Apache-2.0

internal import Foundation

extension FolderServer {
    /// Calls `body` with a server of this process on a database, which other nodes may use
    /// meanwhile. Its socket is in a temporary folder that only this user can enter.
    /// - Throws: ``ServerStartError``, and the errors of `body`.
    package static func with<Result>(
        database settings: PostgresSettings,
        _ body: (FolderServer) async throws -> Result
    ) async throws -> Result {
        var database = settings
        database.connectionsMax = connectionsMax
        let storage = try PostgresServerStorage.openForAdministration(database)
        let folder = try temporaryFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var settings = ServerSettings(dataFolder: folder)
        settings.database = database
        try storage.applyKnownLimits(to: &settings)
        let server = Server(settings, forCommandOn: storage)
        defer { server.close() }
        // It works by the database's clock, as the nodes do.
        try await server.readers.run { try server.otherNodes.checkClock() }
        return try await server.serving(
            FolderSocket(.command, in: DataFolder(path: folder)), body)
    }

    /// As many as there are threads.
    private static let connectionsMax = 3

    private static func temporaryFolder() throws(ServerStartError) -> String {
        let parent = NSTemporaryDirectory()
        var path = Array("\(parent)/ubiquity-XXXXXX".replacing("//", with: "/").utf8CString)
        guard mkdtemp(&path) != nil else {
            throw .folderUnusable(path: parent, reason: DataFolder.systemReason())
        }
        return String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
