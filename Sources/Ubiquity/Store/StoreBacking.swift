// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Logging
internal import Synchronization
internal import UbiquityCore

/// The state that all instances of one store in a process share: the driver, its notification
/// poster and the store's identifier.
///
/// Shared state: `end`, `declared` and `defaults`, each guarded by a mutex, because stores are used and
/// closed on any thread. Everything else is constant and thread-safe.
final class StoreBacking: Sendable {
    private enum End { case open, closed, abandoned }

    /// Nil if the app has none or its file cannot be opened. The store is then local to this
    /// machine.
    let identifier: StoreIdentifier?
    let driver: StoreDriver
    let poster: NotificationPoster
    let observation: StoreObservation
    private let isStrict: Bool
    private let end = Mutex(End.open)

    // MARK: - Opening

    /// The places of this process's stores, by the device's home and the store's file.
    private static let places = Mutex<[String: Place]>([:])

    /// A place for at most one open store. Two connections of one process to one file would report
    /// each other's writes as those of another process. So a store that is opened again waits until
    /// its predecessor has saved and closed. Only its own place waits, not that of other stores.
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

    /// - Parameter device: Nil for a store in memory.
    init(
        _ identity: StoreIdentity, on device: (any StoreDevice)?, _ runtime: StoreRuntime,
        _ configuration: UbiquityConfiguration
    ) throws {
        identifier = identity.identifier
        isStrict = configuration.isStrict
        let poster = NotificationPoster(queue: runtime.noticeQueue)
        self.poster = poster
        driver = try storageErrors {
            try StoreDriver(
                identity, on: device, poster: poster, runtime: runtime,
                configuration: configuration)
        }
        observation = StoreObservation(driver, poster)
        if let warning = identity.warning { report(warning) }
    }

    /// A store in memory, for when its file cannot be opened.
    static func inMemory(_ configuration: UbiquityConfiguration) -> StoreBacking {
        do {
            return try StoreBacking(
                StoreIdentity(fileName: ""), on: nil,
                .system(notices: configuration.notificationQueue), configuration)
        } catch { preconditionFailure("A store in memory has no file to open: \(error)") }
    }

    // MARK: - For the stores

    func synchronize() -> Bool { driver.synchronize() && identifier != nil }

    /// Writes as one transaction. The body must be short.
    func write(
        _ body: (inout SyncEngine, ClockReading) throws(LimitViolation) -> Void
    ) throws(LimitViolation) {
        try finish(driver.shared.write(body))
    }

    /// Does what a write left to do: starts a run, and reports.
    func finish(_ outcome: SharedEngine.WriteOutcome) throws(LimitViolation) {
        if outcome.mustRun { driver.startRun() }
        if outcome.hasConflict { driver.decideConflicts() }
        if let violation = outcome.violation { throw violation }
        for key in outcome.misfits.sorted() {
            report(
                UbiquityError(
                    .invalid,
                    "the conflict policy of the key \"\(key)\" cannot merge the written value: the "
                        + "later write wins"))
        }
    }

    /// Reports that the app's request failed. A mistake of the app ends it if it is strict.
    func refuse(_ error: UbiquityError) {
        // Not a precondition failure, which has no message in release builds.
        if isStrict, error.code == .invalid { fatalError(error.description) }
        report(error)
    }

    /// Reports an error to the log and to observers of errors.
    func report(_ error: UbiquityError) { driver.report(error) }

    /// A status with what the engine does not know.
    func status(of engine: EngineStatus) -> UbiquityStatus {
        UbiquityStatus(
            engine, account: driver.signedIn?.accountName, isConfigured: identifier != nil,
            leader: driver.leader)
    }

    /// Nil while the device is signed out.
    var accountID: String? { driver.signedIn?.account }

    // MARK: - Policies

    /// The keys whose declared policy was set.
    private let declared = Mutex<Set<String>>([])

    /// Sets the policy that a typed key declares, at its first use in this store.
    func declare(_ policy: ConflictPolicy, forKey name: String) {
        guard declared.withLock({ $0.insert(name).inserted }) else { return }
        set(policy, forKey: name)
    }

    func set(_ policy: ConflictPolicy, forKey name: String) {
        guard let key = try? Key(name) else { return }
        driver.change { engine in
            engine.setPolicy(policy.merging, resolver: policy.resolver, for: key)
        }
        driver.decideConflicts()
    }

    // MARK: - Registered defaults

    private let defaults = Mutex<[Key: PropertyListValue]>([:])

    /// What keys without a value read as.
    var registered: [Key: PropertyListValue] { defaults.withLock(\.self) }

    func register(_ values: [Key: PropertyListValue]) {
        defaults.withLock { $0.merge(values) { $1 } }
    }

    // MARK: - Closing

    var isClosed: Bool { end.withLock { $0 != .open } }

    /// Closes the store and lets other processes take over.
    func close() {
        end.withLock { $0 = .closed }
        driver.close()
    }

    /// Ends abruptly, like a killed process.
    func abandon() {
        end.withLock { $0 = .abandoned }
        driver.abandon()
        poster.end()
    }

    deinit {
        if end.withLock({ $0 == .abandoned }) { return }
        // Not `close()`: the last reference may go away on the driver's own queue.
        driver.closeLater()
        poster.end()
    }
}

extension UbiquityConfiguration {
    /// The sign-in of the home folder that contains the store.
    func device() throws -> DeviceAccount {
        let folder = try storageErrors { try DeviceHome(path: home) }
        try storageErrors { try folder.make() }
        return DeviceAccount.of(folder)
    }
}
