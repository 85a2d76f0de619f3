// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

/// The server of a ``TestCloud``.
public struct TestServer: Sendable {
    private let cloud: TestCloud

    init(cloud: TestCloud) { self.cloud = cloud }

    private func change<Result>(_ body: (VirtualServer) -> Result) -> Result {
        cloud.world.inTurn { body(cloud.world.server) }
    }

    // MARK: - Down and up

    /// Whether it answers at all.
    public var isRunning: Bool { change(\.isRunning) }

    /// Ends it without a word.
    public func stop() { change { $0.crash() } }

    /// Starts it again. Devices notice at their next attempt, within a minute.
    public func start() { change { $0.start() } }

    // MARK: - Backups

    /// A copy of all that it has.
    public func backUp() -> TestServerBackup {
        change { TestServerBackup(stores: $0.stores, world: cloud.world) }
    }

    /// Puts an older copy in the place of all that it has, and starts it again.
    public func restore(
        _ backup: TestServerBackup, file: StaticString = #fileID, line: UInt = #line
    ) {
        precondition(
            backup.isOf(cloud.world), "The backup is one of another cloud's server.", file: file,
            line: line)
        change { server in
            server.restore(backup.stores)
            server.start()
        }
    }

    /// Forgets which keys were deleted, as a server does after months. A device that was away meanwhile
    /// takes the whole store.
    public func forgetDeletions() {
        let rule = ForgettingRule(
            rememberedMilliseconds: 0, liveMilliseconds: 0, deletionsMax: 0)
        change { $0.forgetDeletions(by: rule) }
    }

    // MARK: - Settings

    /// What fits into one store. The server goes by it at once; a device knows it from its next connection
    /// on, and refuses too much by itself then.
    public var limits: TestLimits {
        get { change { TestLimits($0.limits) } }
        nonmutating set { change { newValue.apply(to: &$0.limits) } }
    }

    /// How long each commit takes in addition.
    public var delay: Duration {
        get { .milliseconds(change(\.slowness)) }
        nonmutating set { change { $0.slowness = max(0, newValue.milliseconds) } }
    }

    /// By how much its clock is ahead of ``TestCloud/now``; negative: behind.
    public var clockError: Duration {
        get { .milliseconds(change(\.clockError)) }
        nonmutating set { change { $0.clockError = newValue.milliseconds } }
    }

    /// Whether it refuses every device's credential, as though all were revoked. Devices try again after
    /// five minutes.
    public var refusesCredentials: Bool {
        get { change { $0.deniesUntil > cloud.world.now } }
        nonmutating set { change { $0.deniesUntil = newValue ? .max : 0 } }
    }

    // MARK: - What it has

    /// The values of a store as the server has them, boxed as `object(forKey:)` boxes.
    ///
    /// - Parameters:
    ///   - identifier: The store's.
    ///   - account: Whose; nil: the cloud's first.
    public func values(ofStore identifier: String, account: TestAccount? = nil) -> [String: Any] {
        let account = (account ?? cloud.account).number
        let records = change { server in
            let store = cloud.world.number(ofStore: identifier)
            return server.stores[StoreName(account: account, store: store)]?.records ?? [:]
        }
        let values = records.values.visibleValues.map { ($0.key.string, $0.value.boxed) }
        return Dictionary(values) { first, _ in first }
    }
}

/// A copy of all that a ``TestServer`` had, see ``TestServer/backUp()``.
public struct TestServerBackup: Sendable {
    let stores: [StoreName: VirtualStore]
    private let cloud: CloudName

    init(stores: [StoreName: VirtualStore], world: TestWorld) {
        self.stores = stores
        cloud = world.name
    }

    func isOf(_ world: TestWorld) -> Bool { cloud == world.name }
}
