// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Synchronization
internal import UbiquityCore

/// What all instances of one store in a process share: the driver, its audience, and who is signed in.
///
/// Shared state:
/// - `driver`, `audience`, `device`, `queue`, `logger` and the identity are constants, and guard
///   themselves.
/// - `shell`: the file in use, the sign-in it is used for, and the end of the watch over the device's
///   sign-in; by a mutex, because sign-ins are noticed on `queue` and a store is closed anywhere.
///   Held for copies only.
final class StoreBacking: @unchecked Sendable {
    struct Shell {
        /// Nil: in memory.
        var file: (any StoreFile)?
        var folder: String
        var signedIn: SignedInAccount?
        /// The device's state that this store has not followed yet, for it is turning to another
        /// account's file.
        var wanted: DeviceState?
        var stopWatching: (@Sendable () -> Void)?
        var isClosed = false
        /// Closed without a last save.
        var isAbandoned = false
    }

    /// Nil: the app has none, or its file cannot be opened; the store is this machine's alone.
    let identifier: StoreIdentifier?
    let fileName: String
    let driver: StoreDriver
    let audience: Audience
    /// Nil: in memory.
    let device: (any StoreDevice)?
    let shell: Mutex<Shell>
    let queue: any WorkQueue
    private let isStrict: Bool
    private let logger: Logger

    // MARK: - Opening

    /// The stores that are open in this process. Two connections of one process to one file would
    /// be told of each other's writes as of another process's.
    private static let open = Mutex<[String: Weak]>([:])

    private struct Weak { weak var backing: StoreBacking? }

    /// - Throws: ``UbiquityError``.
    static func open(_ configuration: UbiquityConfiguration) throws -> StoreBacking {
        let identity = try configuration.identity()
        let device = try configuration.device()
        return try open.withLock { open in
            let name = "\(device.home.path)/\(identity.fileName)"
            if let backing = open[name]?.backing, !backing.isClosed { return backing }
            let backing = try StoreBacking(
                identity, device, .system(notices: configuration.notificationQueue), configuration)
            open[name] = Weak(backing: backing)
            return backing
        }
    }

    convenience init(
        _ identity: StoreIdentity, _ device: any StoreDevice, _ runtime: StoreRuntime,
        _ configuration: UbiquityConfiguration
    ) throws {
        let state = try storageErrors { try device.current() }
        let file = try storageErrors {
            try device.openFile(identity.fileName, folder: state.folder)
        }
        self.init(
            identity, storage: file.storage, content: file.content,
            shell: Shell(file: file, folder: state.folder), device: device, runtime: runtime,
            configuration: configuration)
        try storageErrors { try use(file) }
        followDevice(device)
        if let warning = identity.warning { report(warning) }
    }

    /// A store whose file cannot be opened.
    static func inMemory(_ configuration: UbiquityConfiguration) -> StoreBacking {
        StoreBacking(
            StoreIdentity(fileName: ""), storage: MemoryStorage(), content: DiskChanges(),
            shell: Shell(folder: ""), device: nil,
            runtime: .system(notices: configuration.notificationQueue),
            configuration: configuration)
    }

    private init(
        _ identity: StoreIdentity, storage: any LocalStorage, content: DiskChanges, shell: Shell,
        device: (any StoreDevice)?, runtime: StoreRuntime, configuration: UbiquityConfiguration
    ) {
        identifier = identity.identifier
        fileName = identity.fileName
        self.device = device
        self.shell = Mutex(shell)
        isStrict = configuration.isStrict
        logger = configuration.logger
        queue = runtime.storeQueue
        audience = Audience(queue: runtime.noticeQueue)
        driver = StoreDriver(
            storage: storage, content: content, settings: configuration.engineSettings,
            audience: audience, runtime: runtime)
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
    func report(_ error: UbiquityError) {
        logger.error("\(error)")
        audience.tell(error)
    }

    // MARK: - The end

    var isClosed: Bool { shell.withLock(\.isClosed) }

    /// Lets other processes take over.
    func close() {
        guard let file = end() else { return driver.close() }
        driver.close()
        file.letGo()
    }

    /// Ends without a word, as a process does that is killed.
    func abandon() {
        _ = end()
        shell.withLock { $0.isAbandoned = true }
        driver.abandon()
        audience.end()
    }

    deinit {
        if shell.withLock(\.isAbandoned) { return }
        // Not by `close()`: the last reference may go away on the driver's own queue.
        let file = end()
        driver.closeLater { file?.letGo() }
        audience.end()
    }

    private func end() -> (any StoreFile)? {
        shell.withLock { shell in
            shell.isClosed = true
            shell.stopWatching?()
            shell.stopWatching = nil
            return shell.file
        }
    }
}
