// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Synchronization
internal import UbiquityCore

/// Keeps this node up to date with what the others do to a shared storage: by their news, and by a
/// comparison every few seconds, since news may be lost.
struct OtherNodes: Sendable {
    let storage: any NodeStorage & StoreStorage
    let threads: BlockingThreads
    let hub: PushHub
    let revocation: Revocation
    let apps: AppRegistry
    let readiness: Readiness
    let clock: SharedClock
    let logger: Logger

    /// The furthest that this node's clock may be from the storage's, in milliseconds.
    private static let clockErrorMax: Int64 = 1_000

    /// - Parameter onEnd: Called with the reason if this node must not go on.
    func follow(onEnd: @escaping @Sendable (String) -> Void) {
        storage.observe { news in hear(news, onEnd) }
    }

    private func hear(_ news: StorageNews, _ onEnd: (String) -> Void) {
        switch news {
        case .committed(let store, let position): hub.hear(of: position, in: store)
        case .revoked(let device): revocation.revoked([device])
        case .accountChanged(let account): revocation.accountChanged(account)
        case .appsChanged: inTurn(reloadApps)
        case .anything:
            revocation.authenticator.invalidateAll()
            inTurn(compare)
        case .historyWentBack(let reason):
            logger.critical(
                "The database has lost what it had confirmed. This server stops.",
                metadata: ["reason": "\(reason)"])
            readiness.stop()
            onEnd(reason)
        }
    }

    /// Runs the body on the threads. The next comparison makes up for one that fails or finds no
    /// room.
    private func inTurn(_ body: @escaping @Sendable () throws -> Void) {
        _ = threads.submit {
            do { try body() } catch {
                logger.warning(
                    "This server could not compare itself with the database.",
                    metadata: ["reason": "\(error)"])
            }
        }
    }

    private func reloadApps() throws {
        try apps.reload()
        revocation.restricted(to: apps.rule)
    }

    /// Looks for whatever the listeners have missed, and for listeners that may no longer listen.
    /// Call this before there are any, too, for the history that they follow. Blocks.
    func compare() throws {
        guard storage.isShared else { return }
        hub.follow(try storage.history())
        try reloadApps()
        let devices = hub.devices
        if !devices.isEmpty {
            let signedIn = try storage.signedIn(among: devices)
            let gone = devices.subtracting(signedIn)
            if !gone.isEmpty { revocation.revoked(gone) }
        }
        for (store, position) in try storage.positions(of: hub.stores) {
            hub.hear(of: position, in: store)
        }
    }

    /// Reads the storage's clock, by which this node works, and compares its own with it. Blocks.
    func checkClock() throws {
        guard let error = try clock.compare({ () throws(StorageError) in try storage.clock() })
        else { return }
        guard readiness.compareClock(isWrong: error > Self.clockErrorMax) else { return }
        logger.error(
            "The clock differs from the database's by too much: set it, for example by NTP.",
            metadata: ["milliseconds": "\(error)"])
    }
}
