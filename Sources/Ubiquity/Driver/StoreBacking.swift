// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import Logging
internal import Synchronization
internal import UbiquityCore

/// What all instances of one store in a process share: the driver, and what wakes it.
///
/// Shared state:
/// - `driver`, `lease`, `logger` and the identity are constants, and guard themselves.
/// - `shell`: the watchers, what the last sign-in was, and the instance that stands for the store in
///   notifications; guarded by a mutex, because sign-ins are noticed on `queue` and instances come
///   and go anywhere. Held for copies only.
final class StoreBacking: @unchecked Sendable {
    private struct Shell {
        var watchers: [FileWatcher] = []
        var signedIn: SignedInAccount?
        weak var store: UbiquitousKeyValueStore?
        var isClosed = false
    }

    /// Nil: the app has none, or its file cannot be opened; the store is this machine's alone.
    let identifier: StoreIdentifier?
    let driver: StoreDriver
    private let logger: Logger
    /// Nil: in memory.
    private let place: (home: DeviceHome, folder: String)?
    private let lease: ProcessLease?
    private let queue = DispatchQueue(label: "ubiquity.store")
    private let shell = Mutex(Shell())

    // MARK: - Opening

    /// The stores that are open in this process. Two connections of one process to one file would
    /// be told of each other's writes as of another process's.
    private static let open = Mutex<[String: Weak]>([:])

    private struct Weak { weak var backing: StoreBacking? }

    /// - Throws: ``UbiquityError``.
    static func open(_ configuration: UbiquityConfiguration) throws -> StoreBacking {
        let identifier = try configuration.resolvedIdentifier().map(Self.identifier)
        let home = try Self.home(configuration)
        let state = try storageErrors { try home.load() }
        let path = home.storePath(
            for: identifier?.string ?? Self.unconfiguredName, folder: state.folder)
        return try open.withLock { open in
            if let backing = open[path]?.backing, !backing.isClosed { return backing }
            let backing = try StoreBacking(
                path: path, identifier: identifier, home: home, state: state,
                configuration: configuration)
            open[path] = Weak(backing: backing)
            return backing
        }
    }

    private convenience init(
        path: String, identifier: StoreIdentifier?, home: DeviceHome, state: DeviceState,
        configuration: UbiquityConfiguration
    ) throws {
        try self.init(
            identifier: identifier, storage: try storageErrors { try SQLiteStorage(path: path) },
            place: (home, state.folder),
            lease: try storageErrors { try ProcessLease(path: path + ".lease") },
            configuration: configuration)
        try storageErrors { try start(path: path, home: home, state: state) }
        if identifier == nil { reportMissingIdentifier() }
    }

    /// A store whose file cannot be opened.
    static func inMemory(_ configuration: UbiquityConfiguration) -> StoreBacking {
        do {
            return try StoreBacking(
                identifier: nil, storage: MemoryStorage(), place: nil, lease: nil,
                configuration: configuration)
        } catch {
            preconditionFailure("Memory that is not a file failed: \(error)")
        }
    }

    private init(
        identifier: StoreIdentifier?, storage: any LocalStorage,
        place: (home: DeviceHome, folder: String)?, lease: ProcessLease?,
        configuration: UbiquityConfiguration
    ) throws {
        self.identifier = identifier
        self.place = place
        self.lease = lease
        logger = configuration.logger
        let relay = NoticeRelay()
        driver = try storageErrors {
            try StoreDriver(storage: storage, settings: configuration.engineSettings) {
                relay.deliver($0)
            }
        }
        relay.backing.withLock { $0 = Weak(backing: self) }
    }

    /// Passes notices on to a backing that does not exist yet when its driver is made.
    private final class NoticeRelay: Sendable {
        let backing = Mutex(Weak())

        func deliver(_ notice: Notice) { backing.withLock(\.backing)?.post(notice) }
    }

    private func start(path: String, home: DeviceHome, state: DeviceState) throws {
        let file = URL(fileURLWithPath: path)
        let store = try FileWatcher(
            folder: file.deletingLastPathComponent().path,
            prefix: file.lastPathComponent + CommitBell.suffix, queue: queue
        ) { [weak self] in self?.driver.lookAtDisk() }
        let account = try FileWatcher(
            folder: home.path, prefix: DeviceHome.accountFileName, queue: queue
        ) { [weak self] in self?.lookAtAccount() }
        shell.withLock { $0.watchers = [store, account] }
        signIn(state.signedIn)
        if lease?.tryAcquire() == true {
            driver.lead()
        } else {
            lease?.whenAcquired { [weak self] in self?.driver.lead() }
        }
    }

    // MARK: - The account

    private func lookAtAccount() {
        guard let (home, folder) = place else { return }
        do {
            let state = try home.load()
            let signedIn = state.folder == folder ? state.signedIn : nil
            guard signedIn != shell.withLock({ $0.signedIn }) else { return }
            if signedIn == nil, state.signedIn != nil {
                report(
                    "This device is signed in to another account now; restart the app to see it.")
            }
            signIn(signedIn)
        } catch {
            report("The sign-in could not be read: \(error)")
        }
    }

    private func signIn(_ account: SignedInAccount?) {
        let before = shell.withLock { shell in
            defer { shell.signedIn = account }
            return shell.signedIn
        }
        if before != nil { driver.tell(.signedOut) }
        guard let account, let identifier, let device = DeviceID(account.device) else { return }
        let transport = HTTPTransport(
            server: account.server, store: identifier, credential: account.credential,
            device: device)
        driver.signIn(account: account.account, device: device, transport: transport)
    }

    // MARK: - For the stores

    /// The first instance stands for the store in notifications, and the next when it is gone.
    func adopt(_ store: UbiquitousKeyValueStore) {
        shell.withLock { shell in
            if shell.store == nil { shell.store = store }
        }
    }

    func synchronize() -> Bool { driver.synchronize() && identifier != nil }

    func report(_ sentence: String) { logger.error("\(sentence)") }

    var isClosed: Bool { shell.withLock(\.isClosed) }

    deinit {
        // Not by `close()`: the last reference may go away on the driver's own queue.
        let (driver, lease) = (driver, lease)
        driver.closeLater { lease?.close() }
    }

    func close() {
        let watchers = shell.withLock { shell in
            defer { shell.watchers = [] }
            shell.isClosed = true
            return shell.watchers
        }
        for watcher in watchers { watcher.cancel() }
        driver.close()
        lease?.close()
    }

    private func post(_ notice: Notice) {
        let store = shell.withLock { $0.store }
        NotificationCenter.default.post(
            name: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            userInfo: [
                NSUbiquitousKeyValueStoreChangeReasonKey: NSNumber(value: notice.reason.rawValue),
                NSUbiquitousKeyValueStoreChangedKeysKey: notice.keys.map(\.string).sorted(),
            ])
    }

    // MARK: - Without an identifier

    private static let unconfiguredName = "unconfigured"

    private func reportMissingIdentifier() {
        report(
            "This app has no store identifier, so its values stay on this machine and do not sync. "
                + "Set \(UbiquityConfiguration.identifierVariable), or configure the store in code."
        )
    }
}

extension StoreBacking {
    private static func identifier(_ string: String) throws -> StoreIdentifier {
        do { return try StoreIdentifier(string) } catch {
            throw UbiquityError(.invalid, "\"\(string)\" names no store: \(error)")
        }
    }

    private static func home(_ configuration: UbiquityConfiguration) throws -> DeviceHome {
        try storageErrors { try DeviceHome(path: configuration.home) }
    }
}

/// Gives what files and folders throw the form of the public API.
private func storageErrors<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw UbiquityError(.storage, "\(error)") }
}

extension UbiquityConfiguration {
    fileprivate var engineSettings: SyncEngine.Settings {
        var settings = SyncEngine.Settings()
        switch firstSync {
        case .serverWins: settings.firstSync = .serverWins
        case .timestamps: settings.firstSync = .timestamps
        }
        return settings
    }
}
