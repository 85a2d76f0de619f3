// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

/// The server of a ``TestCloud``.
/// <!-- Snippets/TestingReference.swift: server -->
/// ```swift
/// cloud.server.stop()
/// store.set("dark", forKey: "theme")
/// cloud.settle()
/// #expect(store.status.pendingKeys == ["theme"])
/// cloud.server.start()
/// cloud.settle()
/// #expect(store.status.pendingKeys.isEmpty)
/// ```
public struct TestServer: Sendable {
    private let cloud: TestCloud

    init(cloud: TestCloud) { self.cloud = cloud }

    private func change<Result>(_ body: (VirtualServer) -> Result) -> Result {
        cloud.world.inTurn { body(cloud.world.server) }
    }

    // MARK: - Stopping and starting

    /// Whether it responds.
    public var isRunning: Bool { change(\.isRunning) }

    /// Stops it abruptly.
    public func stop() { change { $0.crash() } }

    /// Starts it again. Devices notice at their next attempt, within a minute.
    public func start() { change { $0.start() } }

    // MARK: - Backups

    /// Copies all of its data.
    /// <!-- Snippets/TestingReference.swift: backup -->
    /// ```swift
    /// let backup = cloud.server.backUp()
    /// store.set("light", forKey: "theme")
    /// cloud.settle()
    /// cloud.server.restore(backup)
    /// cloud.settle()  // the device gives the server back what it lost
    /// #expect(
    ///     cloud.server.values(ofStore: "TEAMID.com.example.notes")["theme"] as? String
    ///         == "light")
    /// ```
    public func backUp() -> TestServerBackup {
        change {
            TestServerBackup(stores: $0.stores, sealings: $0.sealings, world: cloud.world)
        }
    }

    /// Replaces all of its data by an older copy, and starts it again.
    public func restore(
        _ backup: TestServerBackup, file: StaticString = #fileID, line: UInt = #line
    ) {
        precondition(
            backup.isOf(cloud.world), "The backup is of another cloud's server.", file: file,
            line: line)
        change { server in
            server.restore(backup.stores, backup.sealings)
            server.start()
        }
    }

    /// Drops all tombstones, as a server does after months. A device that was away meanwhile
    /// downloads the whole store.
    public func forgetDeletions() {
        let rule = CompactionRule(
            retentionMilliseconds: 0, liveMilliseconds: 0, tombstonesMax: 0)
        change { $0.compactTombstones(by: rule) }
    }

    // MARK: - Settings

    /// The limits of one store. They apply on the server at once. A device learns them with its
    /// next connection, and then refuses excessive writes itself.
    /// <!-- Snippets/TestingReference.swift: limits -->
    /// ```swift
    /// cloud.server.limits.keysMax = 1
    /// cloud.server.stop()
    /// cloud.server.start()
    /// cloud.settle()
    /// store.set("one too many", forKey: "note.1")
    /// #expect(store.object(forKey: "note.1") == nil)
    /// ```
    public var limits: TestLimits {
        get { change { TestLimits($0.limits) } }
        nonmutating set { change { newValue.apply(to: &$0.limits) } }
    }

    /// The additional time of each commit.
    public var delay: Duration {
        get { .milliseconds(change(\.slowness)) }
        nonmutating set { change { $0.slowness = max(0, newValue.milliseconds) } }
    }

    /// The lead of its clock over ``TestCloud/now``; negative if it is behind.
    public var clockError: Duration {
        get { .milliseconds(change(\.clockError)) }
        nonmutating set { change { $0.clockError = newValue.milliseconds } }
    }

    /// Whether it refuses every device's credential, as if all were revoked. Devices retry after
    /// five minutes.
    /// <!-- Snippets/TestingReference.swift: refuses -->
    /// ```swift
    /// cloud.server.refusesCredentials = true
    /// cloud.server.stop()
    /// cloud.server.start()
    /// cloud.advance(by: .seconds(60))  // within which the device connects again
    /// #expect(store.status.connection == .unauthorized)
    /// ```
    public var refusesCredentials: Bool {
        get { change { $0.deniesUntil > cloud.world.now } }
        nonmutating set { change { $0.deniesUntil = newValue ? .max : 0 } }
    }

    // MARK: - Content

    /// The values of a store on the server, boxed as by `object(forKey:)`. Those of a sealed account
    /// as its devices see them.
    ///
    /// - Parameters:
    ///   - identifier: The store's identifier.
    ///   - account: The account; nil for the cloud's first.
    public func values(ofStore identifier: String, account: TestAccount? = nil) -> [String: Any] {
        let account = (account ?? cloud.account).number
        let records = change { server in
            let store = cloud.world.number(ofStore: identifier)
            let name = StoreReference(account: account, store: store)
            return cloud.world.opener(of: name).opened(server.stores[name]?.records ?? [:])
        }
        let values = records.values.visibleValues.map { ($0.key.string, $0.value.boxed) }
        return Dictionary(values) { first, _ in first }
    }
}

/// A copy of all data of a ``TestServer``, see ``TestServer/backUp()``.
public struct TestServerBackup: Sendable {
    let stores: [StoreReference: VirtualStore]
    let sealings: [Int: SealingState]
    private let cloud: UUID

    init(
        stores: [StoreReference: VirtualStore], sealings: [Int: SealingState], world: TestWorld
    ) {
        (self.stores, self.sealings) = (stores, sealings)
        cloud = world.name
    }

    func isOf(_ world: TestWorld) -> Bool { cloud == world.name }
}

/// The limits of one store, see ``TestServer/limits``. Initially a server's defaults.
public struct TestLimits: Hashable, Sendable {
    /// The maximum size of all values of a store, in bytes.
    public var storeBytesMax: Int
    /// The maximum number of keys in a store.
    public var keysMax: Int
    /// The maximum size of one value, in bytes.
    public var valueBytesMax: Int

    init(_ limits: StoreLimits) {
        storeBytesMax = limits.storeBytesMax
        keysMax = limits.keysMax
        valueBytesMax = limits.valueBytesMax
    }

    func apply(to limits: inout StoreLimits) {
        limits.storeBytesMax = storeBytesMax
        limits.keysMax = keysMax
        limits.valueBytesMax = valueBytesMax
    }
}
