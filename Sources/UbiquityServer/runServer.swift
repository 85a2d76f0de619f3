// SPDX-License-Identifier: Apache-2.0

package import Logging

/// Runs a server until the task is cancelled or the process is told to end (SIGTERM, SIGINT).
///
/// Then pushes under way are answered, streams end within about a second, and the database is
/// closed.
/// - Parameter onReady: Called once, with the port, when requests are taken.
/// - Throws: ``ServerStartError`` if it cannot start.
package func runServer(
    _ settings: ServerSettings, logger: Logger,
    onReady: @escaping @Sendable (_ port: Int) async -> Void = { _ in }
) async throws {
    let folder = DataFolder(path: settings.dataFolder)
    try folder.make()
    let lock = try FolderLock(folder)
    try folder.makeDatabaseFile()
    let storage = try SQLiteServerStorage.openForServer(folder.databasePath)
    let operatorHash = try OperatorCredential.prepare(in: folder, storage: storage)
    let server = Server(
        settings, storage: storage, operatorHash: operatorHash, logger: logger)
    defer { withExtendedLifetime(lock) { server.close() } }
    try await server.run(onReady: onReady)
}
