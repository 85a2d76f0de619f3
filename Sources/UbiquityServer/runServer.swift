// SPDX-License-Identifier: Apache-2.0

package import Logging

/// Runs a server until the task is cancelled or the process is told to end (SIGTERM, SIGINT).
///
/// At the end, pushes under way are answered, streams end within about a second, and the database
/// is closed.
/// - Parameters:
///   - onReady: Called once with the port when the server accepts requests.
///   - onMetricsReady: The same for the metrics, if the settings enable them.
/// - Throws: ``ServerStartError`` if it cannot start.
package func runServer(
    _ settings: ServerSettings, logger: Logger,
    onReady: @escaping @Sendable (_ port: Int) async -> Void = { _ in },
    onMetricsReady: @escaping @Sendable (_ port: Int) async -> Void = { _ in }
) async throws {
    let tls = try settings.tls.map(TLSIdentity.init)
    try settings.identity?.checkFile()
    let folder = DataFolder(path: settings.dataFolder)
    try folder.make()
    let lock = try FolderLock(folder)
    folder.removeDrafts()
    try folder.makeDatabaseFile()
    let storage = try SQLiteServerStorage.openForServer(
        folder.databasePath, reserve: DiskReserve(path: folder.reservePath))
    let operatorHash = try OperatorCredential.prepare(in: folder, storage: storage)
    recordLimits(settings, in: storage, logger)
    let server = Server(
        withinDescriptors(settings, logger), storage: storage, operatorHash: operatorHash, tls: tls,
        logger: logger)
    defer { withExtendedLifetime(lock) { server.close() } }
    try await server.run(onReady: onReady, onMetricsReady: onMetricsReady)
}

/// Records changed limits. A failure does not keep the server from starting, because the disk may
/// be full.
private func recordLimits(
    _ settings: ServerSettings, in storage: SQLiteServerStorage, _ logger: Logger
) {
    do {
        try storage.recordChanges(ofLimits: settings.limitTexts, now: settings.clock.now())
    } catch {
        logger.warning(
            "A change of limits was not recorded.", metadata: ["reason": "\(error)"])
    }
}

/// Lowers the maximum of connections if the system allows the process fewer. The server then
/// refuses excess connections instead of failing.
private func withinDescriptors(_ settings: ServerSettings, _ logger: Logger) -> ServerSettings {
    var settings = settings
    let max = FileDescriptors.raise() - FileDescriptors.reserve - Server.refusedMax
    guard settings.connectionsMax > max else { return settings }
    logger.warning(
        "The system lets this process have fewer connections than the settings: raise its limit of open files.",
        metadata: ["connectionsMax": "\(max)", "wanted": "\(settings.connectionsMax)"])
    settings.connectionsMax = Swift.max(1, max)
    return settings
}
