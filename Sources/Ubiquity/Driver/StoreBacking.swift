// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Logging
internal import Synchronization
internal import UbiquityCore

/// What all instances of one store in a process share: the driver, its audience, and the store's name.
///
/// Shared state: `end`, by a mutex, because a store is closed anywhere. Everything else is a constant,
/// and guards itself.
final class StoreBacking: Sendable {
    private enum End { case open, closed, abandoned }

    /// Nil: the app has none, or its file cannot be opened; the store is this machine's alone.
    let identifier: StoreIdentifier?
    let driver: StoreDriver
    let audience: Audience
    private let isStrict: Bool
    private let end = Mutex(End.open)

    // MARK: - Opening

    /// The places of this process's stores, by the device's home and the store's file.
    private static let places = Mutex<[String: Place]>([:])

    /// Where at most one store is open. Two connections of one process to one file would be told of each
    /// other's writes as of another process's: a store that is made again waits until the one before has
    /// saved and closed. Its place waits with it, and no other store's.
    private final class Place: Sendable {
        struct Opened {
            weak var backing: StoreBacking?
            /// Signalled once.
            var closed: DispatchSemaphore
        }

        let opened = Mutex<Opened?>(nil)
    }

    /// - Throws: ``UbiquityError``.
    static func open(_ configuration: UbiquityConfiguration) throws -> StoreBacking {
        let identity = try configuration.identity()
        let device = try configuration.device()
        let place = places.withLock { places in
            let name = "\(device.home.path)/\(identity.fileName)"
            let place = places[name] ?? Place()
            places[name] = place
            return place
        }
        return try place.opened.withLock { opened in
            if let backing = opened?.backing, !backing.isClosed { return backing }
            opened?.closed.wait()
            opened = nil
            let backing = try StoreBacking(
                identity, on: device, .system(notices: configuration.notificationQueue),
                configuration)
            opened = Place.Opened(backing: backing, closed: backing.driver.closed)
            return backing
        }
    }

    /// - Parameter device: Nil: the store is in memory.
    init(
        _ identity: StoreIdentity, on device: (any StoreDevice)?, _ runtime: StoreRuntime,
        _ configuration: UbiquityConfiguration
    ) throws {
        identifier = identity.identifier
        isStrict = configuration.isStrict
        let audience = Audience(queue: runtime.noticeQueue)
        self.audience = audience
        driver = try storageErrors {
            try StoreDriver(
                identity, on: device, audience: audience, runtime: runtime,
                configuration: configuration)
        }
        if let warning = identity.warning { report(warning) }
    }

    /// A store whose file cannot be opened.
    static func inMemory(_ configuration: UbiquityConfiguration) -> StoreBacking {
        do {
            return try StoreBacking(
                StoreIdentity(fileName: ""), on: nil,
                .system(notices: configuration.notificationQueue), configuration)
        } catch { preconditionFailure("A store in memory opens nothing: \(error)") }
    }

    // MARK: - For the stores

    func synchronize() -> Bool { driver.synchronize() && identifier != nil }

    /// Writes as one transaction. The body must be short.
    func write(
        _ body: (inout SyncEngine, ClockReading) throws(LimitViolation) -> Void
    ) throws(LimitViolation) {
        let misfits = try driver.write(body)
        if !misfits.isEmpty { reportMisfits(misfits) }
    }

    /// What the app asked for was not done. A mistake of its own ends it, where it asked for that.
    func refuse(_ error: UbiquityError) {
        // Not a precondition's failure, which says nothing in a release build.
        if isStrict, error.code == .invalid { fatalError(error.description) }
        report(error)
    }

    /// Tells the log, and who listens for errors.
    func report(_ error: UbiquityError) { driver.report(error) }

    /// What a status says beyond the engine's word.
    func status(of engine: EngineStatus) -> UbiquityStatus {
        UbiquityStatus(
            engine, account: driver.signedIn?.accountName, isConfigured: identifier != nil,
            leader: driver.leader)
    }

    /// Nil while the device is signed out.
    var accountID: String? { driver.signedIn?.account }

    // MARK: - The end

    var isClosed: Bool { end.withLock { $0 != .open } }

    /// Lets other processes take over.
    func close() {
        end.withLock { $0 = .closed }
        driver.close()
    }

    /// Ends without a word, as a process does that is killed.
    func abandon() {
        end.withLock { $0 = .abandoned }
        driver.abandon()
        audience.end()
    }

    deinit {
        if end.withLock({ $0 == .abandoned }) { return }
        // Not by `close()`: the last reference may go away on the driver's own queue.
        driver.closeLater()
        audience.end()
    }
}
