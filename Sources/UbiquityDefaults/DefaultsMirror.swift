// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import Synchronization
public import Ubiquity

/// Keeps chosen keys of an app's preferences and of a store equal, both ways, deletions included.
///
/// ```swift
/// let mirror = try DefaultsMirror(.standard, keys: ["theme", .key("level", .maximum)])
/// ```
///
/// The app goes on with its `UserDefaults`, which are right whether there is a server or not; the
/// store carries what changes. Registered defaults are never mirrored. Keep the mirror for as long as
/// it is to work.
///
/// What is noticed when:
/// - a change that came to the store: at once;
/// - ``set(_:forKey:)`` and ``removeObject(forKey:)`` of the mirror: at once, on a queue of its own;
/// - a write to `UserDefaults` itself: on Apple's systems at once; elsewhere, where nobody is told of
///   it, at the next of these moments: ``update()``, ``updateNow()``, anything above, and every
///   ``init(_:_:keys:interval:)`` interval;
/// - another process's write to the same preferences: at these moments too, once that process has
///   written them to the disk.
///
/// Each of these looks at all keys, on a queue of the mirror's own. Cost on Linux: about 12 µs for each
/// key that is mirrored, and 3 µs for each other one. A change also has the preferences' file and the
/// store's written.
///
/// Safe to call from any thread. Shared state: `parts`, what ends with the mirror, by its mutex.
/// `@unchecked Sendable` because `UserDefaults` guards itself, which Foundation on Linux does not say.
public final class DefaultsMirror: @unchecked Sendable {
    /// The preferences.
    public let defaults: UserDefaults
    /// What carries them.
    public let store: UbiquitousKeyValueStore
    private let work: MirrorWork
    private let parts = Mutex(Parts())

    private struct Parts {
        var readers: [Task<Void, Never>] = []
        var observer: NotificationObserver?
    }

    /// Posted with the mirror as object when it wrote to the preferences, from a queue of its own and
    /// never inside of a call of the app's.
    ///
    /// As for the store's notification, an observer that asked for `queue: .main` gets it there,
    /// provided that the program serves its main queue.
    public static let didChangeDefaultsNotification = Notification.Name(
        "UbiquityDefaultsMirrorDidChangeDefaultsNotification")
    /// In `userInfo`: the keys whose value the mirror wrote or removed, a `[String]`.
    public static let changedKeysKey = "UbiquityDefaultsMirrorChangedKeysKey"

    /// Starts at once: when it returns, the preferences have what the store has on this device. What
    /// it wrote to them is told a moment later.
    ///
    /// - Parameters:
    ///   - domain: The app's own preferences, or a suite's.
    ///   - store: Nil: the default store.
    ///   - keys: Which keys, and what becomes of conflicts; the first that names a key counts, a
    ///     single key before a pattern.
    ///   - interval: How often all keys are looked at without being asked, where nobody tells of
    ///     writes. Zero: never.
    /// - Throws: `UbiquityError` with `invalid` for keys that cannot be mirrored, and for a
    ///   suite that there cannot be; with `refused` if another mirror of this process has one of the
    ///   keys.
    public init(
        _ domain: DefaultsDomain = .standard, _ store: UbiquitousKeyValueStore? = nil,
        keys: [MirroredKeys], interval: Duration = DefaultsMirror.usualInterval
    ) throws {
        let store = store ?? .default
        let selection = try KeySelection(keys)
        let mirrored = try MirroredDomain(domain, store: store.mirroredIdentifier)
        let claim = try MirrorClaims.shared.claim(domain, store.mirroredName, selection)
        self.store = store
        defaults = mirrored.defaults
        MirrorClaims.shared.waitForRounds(of: domain)
        work = MirrorWork(
            mirrored, store, keys: selection, claim: claim,
            rounds: MirrorClaims.shared.rounds(of: domain))
        work.audience.speak(for: self)
        start(every: interval)
    }

    /// 5 seconds, and never on Apple's systems, which tell of writes.
    public static var usualInterval: Duration {
        #if canImport(Darwin)
        .zero
        #else
        .seconds(5)
        #endif
    }

    deinit { stop() }

    // MARK: - Writing and looking

    /// Sets a value in the preferences, and has the store told of it at once. As
    /// `UserDefaults.set(_:forKey:)`, except that a value that is no property list is an issue, and
    /// nothing is written; nil removes the key.
    public func set(_ value: Any?, forKey key: String) {
        guard let value else { return removeObject(forKey: key) }
        guard work.set(value, forKey: key) else { return }
        update()
    }

    /// Removes a key from the preferences, and has the store told of it at once.
    public func removeObject(forKey key: String) {
        defaults.removeObject(forKey: key)
        update()
    }

    /// Has preferences and store compared as soon as may be, on a queue of the mirror's.
    ///
    /// For the moments at which an app has written its preferences: after a settings view has closed,
    /// before it ends.
    public func update() { work.schedule() }

    /// Compares preferences and store; when it returns, each has what the other had at the call.
    /// Does not wait for a server.
    public func updateNow() async { await work.roundNow() }

    /// Ends the mirror's work, at the latest after the comparison that is under way. What changes
    /// from then on is noticed by the next mirror. The preferences keep their values, the store too.
    public func stop() {
        let parts = parts.withLock { parts in
            defer { parts = Parts() }
            return parts
        }
        for reader in parts.readers { reader.cancel() }
        work.stop()
    }

    // MARK: - News

    /// The keys that the mirror wrote or removed in the preferences, from now on.
    ///
    /// A slow reader gets the keys of several changes together. For one reader; ends with the mirror.
    public var changes: some AsyncSequence<[String], Never> & Sendable { work.audience.changes() }

    /// What cannot be mirrored, the present issues first, each once. The log tells the same.
    ///
    /// For one reader; ends with the mirror.
    public var issues: some AsyncSequence<MirrorIssue, Never> & Sendable { work.audience.issues() }

    // MARK: - The start

    private func start(every interval: Duration) {
        let (changes, statuses) = (store.changes, store.statuses)
        work.begin()
        let work = work
        let readers = [
            Task { [weak work] in
                for await change in changes { work?.told(change) }
            },
            Task { [weak work] in
                var last: MirrorMoment?
                for await status in statuses where MirrorMoment(status) != last {
                    last = MirrorMoment(status)
                    work?.schedule()
                }
            },
        ]
        let observer = NotificationObserver(UserDefaults.didChangeNotification) {
            [weak work] in work?.schedule()
        }
        if interval > .zero { work.round(every: interval) }
        parts.withLock { $0 = Parts(readers: readers, observer: observer) }
    }
}

/// What of a status says how keys are to be looked at.
private struct MirrorMoment: Equatable {
    var account: String?
    var isSignedOut: Bool
    var isSynced: Bool

    init(_ status: UbiquityStatus) {
        account = status.account
        isSignedOut = status.connection == .signedOut
        isSynced = status.isInitialSyncComplete
    }
}
