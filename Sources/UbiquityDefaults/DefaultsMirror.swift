// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import Synchronization
public import Ubiquity

/// Keeps chosen keys of an app's preferences and of a store equal, in both directions, including
/// deletions.
/// <!-- Snippets/Preferences.swift: three -->
/// ```swift
/// let mirror = try DefaultsMirror(keys: ["theme", .key("level", .maximum), .prefix("editor.")])
///
/// mirror.set("dark", forKey: "theme")
/// ```
///
/// The app continues to use its `UserDefaults`, which work with and without a server; the store
/// carries the changes. Registered defaults are never mirrored. Keep a reference to the mirror for
/// as long as it should work.
///
/// When changes are noticed:
/// - A change of the store: at once.
/// - ``set(_:forKey:)`` and ``removeObject(forKey:)`` of the mirror: at once, on a queue of its
///   own.
/// - A write to `UserDefaults` itself: at once on Apple's systems. Elsewhere there is no
///   notification, and it is noticed at the next ``update()`` or ``updateNow()``, with any change
///   above, or after the interval of ``init(_:_:keys:interval:)``.
/// - Another process's write to the same preferences: at the same times, once that process has
///   written them to disk.
///
/// Each of these compares all keys, on a queue of the mirror's own. On Linux that costs about 12 µs
/// for each mirrored key and 3 µs for each other one. A change also writes the file of the
/// preferences and that of the store.
///
/// Safe to call from any thread. Shared state: `parts`, which end with the mirror, guarded by its
/// mutex. `@unchecked Sendable` because `UserDefaults` is thread-safe, which Foundation on Linux
/// does not declare.
public final class DefaultsMirror: @unchecked Sendable {
    /// The preferences.
    public let defaults: UserDefaults
    /// The store that carries them.
    public let store: UbiquitousKeyValueStore
    private let work: MirrorWorker
    private let parts = Mutex(Parts())

    private struct Parts {
        var readers: [Task<Void, Never>] = []
        var observer: NotificationObserver?
    }

    /// Posted with the mirror as object when it wrote to the preferences, on a queue of its own and
    /// never within a call of the app.
    ///
    /// As for the store's notification, an observer registered with `queue: .main` is called there,
    /// provided that the program runs its main queue.
    public static let didChangeDefaultsNotification = Notification.Name(
        "UbiquityDefaultsMirrorDidChangeDefaultsNotification")
    /// The key in `userInfo` for the keys that the mirror wrote or removed, a `[String]`.
    public static let changedKeysKey = "UbiquityDefaultsMirrorChangedKeysKey"

    /// Starts at once: when it returns, the preferences have the values that the store has on this
    /// device. A notification of the changes follows.
    ///
    /// - Parameters:
    ///   - domain: The app's own preferences, or a suite's.
    ///   - store: Nil for the default store.
    ///   - keys: The keys and their conflict policies. The first entry that matches a key applies,
    ///     single keys before patterns.
    ///   - interval: How often all keys are compared on systems without notifications of writes.
    ///     Zero for never.
    /// - Throws: `UbiquityError` with `invalid` for keys that cannot be mirrored and for an
    ///   impossible suite, or with `refused` if another mirror of this process has one of the keys.
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
        work = MirrorWorker(
            mirrored, store, keys: selection, claim: claim,
            rounds: MirrorClaims.shared.rounds(of: domain))
        work.poster.attach(to: self)
        start(every: interval)
    }

    /// 5 seconds, or never on Apple's systems, which report writes.
    public static var usualInterval: Duration {
        #if canImport(Darwin)
        .zero
        #else
        .seconds(5)
        #endif
    }

    deinit { stop() }

    // MARK: - Writing and comparing

    /// Sets a value in the preferences, and updates the store at once. Like
    /// `UserDefaults.set(_:forKey:)`, except that a value that is not a property list is reported
    /// as an issue and not written. Nil removes the key.
    public func set(_ value: Any?, forKey key: String) {
        guard let value else { return removeObject(forKey: key) }
        guard work.set(value, forKey: key) else { return }
        update()
    }

    /// Removes a key from the preferences, and updates the store at once.
    public func removeObject(forKey key: String) {
        defaults.removeObject(forKey: key)
        update()
    }

    /// Compares preferences and store as soon as possible, on a queue of the mirror.
    ///
    /// Call this when the app has written its preferences: after a settings view has closed, or
    /// before the app ends.
    /// <!-- Snippets/Preferences.swift: write -->
    /// ```swift
    /// func settingsDidClose() {
    ///     UserDefaults.standard.set(14, forKey: "editor.size")
    ///     mirror.update()
    /// }
    ///
    /// func appWillEnd() async {
    ///     await mirror.updateNow()
    ///     mirror.store.synchronize()
    /// }
    /// ```
    public func update() { work.schedule() }

    /// Compares preferences and store. When it returns, each has what the other had at the call.
    /// Does not wait for a server.
    public func updateNow() async { await work.roundNow() }

    /// Ends the mirror's work, at the latest after the comparison under way. Later changes are
    /// noticed by the next mirror. Preferences and store keep their values.
    public func stop() {
        let parts = parts.withLock { parts in
            defer { parts = Parts() }
            return parts
        }
        for reader in parts.readers { reader.cancel() }
        work.stop()
    }

    // MARK: - Changes and issues

    /// The keys that the mirror writes or removes in the preferences, from now on.
    ///
    /// A slow reader gets the keys of several changes combined. Supports one reader; ends with the
    /// mirror.
    /// <!-- Snippets/Preferences.swift: follow -->
    /// ```swift
    /// func followPreferences() async {
    ///     for await keys in mirror.changes {
    ///         print("changed elsewhere: \(keys)")
    ///     }
    /// }
    ///
    /// let observer = NotificationCenter.default.addObserver(
    ///     forName: DefaultsMirror.didChangeDefaultsNotification, object: mirror, queue: .main
    /// ) { notification in
    ///     let keys = notification.userInfo?[DefaultsMirror.changedKeysKey] as? [String] ?? []
    ///     print("redraw what shows \(keys)")
    /// }
    /// ```
    public var changes: some AsyncSequence<[String], Never> & Sendable { work.poster.changes() }

    /// The problems with mirrored keys, the current ones first, each once. They are also logged.
    ///
    /// Supports one reader; ends with the mirror.
    /// <!-- Snippets/Preferences.swift: issues -->
    /// ```swift
    /// func logIssues() async {
    ///     for await issue in mirror.issues {
    ///         print(issue)
    ///     }
    /// }
    /// ```
    public var issues: some AsyncSequence<MirrorIssue, Never> & Sendable { work.poster.issues() }

    // MARK: - The start

    private func start(every interval: Duration) {
        let (changes, statuses) = (store.changes, store.statuses)
        work.begin()
        let work = work
        let readers = [
            Task { [weak work] in
                for await change in changes { work?.receive(change) }
            },
            Task { [weak work] in
                var last: MirrorStatus?
                for await status in statuses where MirrorStatus(status) != last {
                    last = MirrorStatus(status)
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

/// The parts of a status that determine how keys are compared.
private struct MirrorStatus: Equatable {
    var account: String?
    var isSignedOut: Bool
    var isSynced: Bool

    init(_ status: UbiquityStatus) {
        account = status.account
        isSignedOut = status.connection == .signedOut
        isSynced = status.isInitialSyncComplete
    }
}

/// Calls a closure for each notification until it is released.
///
/// `@unchecked Sendable`: the token is only ever returned to the notification centre.
private final class NotificationObserver: @unchecked Sendable {
    private let token: any NSObjectProtocol

    /// - Parameter name: Observed for all objects, because an app may have several for one domain.
    init(_ name: Notification.Name, _ body: @escaping @Sendable () -> Void) {
        token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) {
            _ in body()
        }
    }

    deinit { NotificationCenter.default.removeObserver(token) }
}
