// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import Logging
package import UbiquityCore

/// A store for small values that follow a person across their devices.
///
/// It does the job of Apple's `NSUbiquitousKeyValueStore`, with the same names. Reads and writes
/// are local and never wait for the network. A write is in memory when the call returns, on disk
/// within moments, and on the server when there is one to reach.
///
/// An app may subclass it for its tests: the typed setters go through ``set(_:forKey:)-(Any?,_)``,
/// the typed getters through ``object(forKey:)``. A subclass only needs to override these and
/// ``removeObject(forKey:)``; none of the three calls another.
///
/// Safe to call from any thread. `@unchecked Sendable` because it is open: its own properties are
/// set once, before an initialiser returns, and are thread-safe; a subclass that adds state must
/// guard it. An `NSObject`, like Apple's class, because existing code compares stores, keeps them
/// in sets and passes them as objects.
/// <!-- Snippets/GettingStarted.swift: use -->
/// ```swift
/// let store = UbiquitousKeyValueStore.default
/// store.set("dark", forKey: "theme")
/// print("the theme is \(store.string(forKey: "theme") ?? "light")")
/// ```
open class UbiquitousKeyValueStore: NSObject, @unchecked Sendable {
    /// Nil for the default store's backing. A test double that overrides everything it uses never
    /// opens that.
    private var own: StoreBacking?
    /// The memory of `own`, for calls that must be fast.
    private var ownShared: SharedEngine?

    /// Shared by all instances with the same identifier and home.
    var backing: StoreBacking { own ?? DefaultStore.shared.store.backing }

    fileprivate var shared: SharedEngine { ownShared ?? DefaultStore.shared.store.shared }

    /// The app's default store.
    ///
    /// Its identifier comes from ``configureDefault(_:)``, or from the places listed at
    /// ``UbiquityConfiguration/identifier``. Without an identifier it only works on this machine,
    /// reports this in the log, and ``synchronize()`` returns false.
    open class var `default`: UbiquitousKeyValueStore { DefaultStore.shared.store }

    /// Configures the ``default`` store. Call this before its first use.
    ///
    /// - Throws: ``UbiquityError`` as ``init(configuration:)`` does, and if the default store is
    ///   already in use.
    public static func configureDefault(_ configuration: UbiquityConfiguration) throws {
        try DefaultStore.shared.configure(configuration)
    }

    /// Creates another object for the ``default`` store, never a second store.
    ///
    /// The only designated initialiser, as in Apple's class, so that Swift calls it implicitly at
    /// the end of a subclass's `init()`.
    public override init() { super.init() }

    /// Opens another store by its identifier.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/invalid`` for a malformed identifier,
    ///   and ``UbiquityError/Code/storage`` if the local file cannot be opened. The file is left
    ///   unchanged.
    public convenience init(identifier: String) throws {
        try self.init(configuration: UbiquityConfiguration(identifier: identifier))
    }

    /// Opens another store with a configuration. Without an identifier it behaves like ``default``
    /// without one.
    ///
    /// - Throws: As ``init(identifier:)``.
    public convenience init(configuration: UbiquityConfiguration) throws {
        self.init(backing: try StoreBacking.open(configuration))
    }

    convenience init(backing: StoreBacking) {
        self.init()
        (own, ownShared) = (backing, backing.driver.shared)
        backing.poster.adopt(self)
    }

    /// An empty store in memory, which is not synced.
    package static func inMemory(
        _ configuration: UbiquityConfiguration
    ) -> UbiquitousKeyValueStore {
        UbiquitousKeyValueStore(backing: .inMemory(configuration))
    }

    /// Opens a store on a device and runtime of the caller, for tests of apps.
    /// - Throws: ``UbiquityError`` as ``init(identifier:)`` does.
    package convenience init(
        on device: any StoreDevice, runtime: StoreRuntime, configuration: UbiquityConfiguration
    ) throws {
        self.init(
            backing: try StoreBacking(
                configuration.identity(), on: device, runtime, configuration))
    }

    /// Posted with the store as object when values changed by anything but this process's own
    /// writes. The new values can be read before it is posted.
    ///
    /// Posted on a queue of the store's own. An observer registered with `queue: .main` is called
    /// there.
    /// <!-- Snippets/GettingStarted.swift: observe -->
    /// ```swift
    /// let observer = NotificationCenter.default.addObserver(
    ///     forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: .main
    /// ) { notification in
    ///     let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
    ///     print("changed elsewhere: \(keys ?? [])")
    /// }
    /// ```
    public class var didChangeExternallyNotification: Notification.Name {
        .storeDidChangeExternally
    }

    // MARK: - Reading

    /// The value of a key as a Foundation object: `NSString`, `NSNumber`, `NSDate`, `NSData`,
    /// `NSArray` or `NSDictionary`. Nil if there is none.
    open func object(forKey aKey: String) -> Any? { (value(aKey) ?? registered(aKey))?.boxed }

    /// The string of a key; a number as text, `true` as "1". Nil for any other type, and if there
    /// is no value.
    open func string(forKey aKey: String) -> String? { read(aKey) { $0.asString } }

    /// The array of a key, with elements boxed as by ``object(forKey:)``. Nil for any other type.
    open func array(forKey aKey: String) -> [Any]? { read(aKey)?.boxedArray }

    /// The dictionary of a key, with values boxed as by ``object(forKey:)``. Nil for any other
    /// type.
    open func dictionary(forKey aKey: String) -> [String: Any]? {
        read(aKey)?.boxedDictionary
    }

    /// The data of a key. Nil for any other type.
    open func data(forKey aKey: String) -> Data? {
        if case .data(let bytes) = read(aKey) { Data(bytes) } else { nil }
    }

    /// The integer of a key. Reals lose their fraction, strings give their leading digits, `true`
    /// is 1. 0 for anything else. Numbers outside of `Int64` are clamped to it.
    open func longLong(forKey aKey: String) -> Int64 { read(aKey) { $0.asInt64 } ?? 0 }

    /// The number of a key. Strings give their leading number, `true` is 1. 0 for anything else.
    open func double(forKey aKey: String) -> Double { read(aKey) { $0.asDouble } ?? 0 }

    /// The Bool of a key. Numbers are true unless zero, strings are read by the rules of
    /// `NSString.boolValue`. False for anything else.
    open func bool(forKey aKey: String) -> Bool { read(aKey) { $0.asBool } ?? false }

    /// Reads for the typed getters, through ``object(forKey:)`` if a subclass may have overridden
    /// it.
    ///
    /// - Parameter body: Must be short, because it is called with the store's lock held.
    @inline(__always)
    private func read<Result: Sendable>(
        _ key: String, _ body: (PropertyListValue) -> Result?
    ) -> Result? {
        if isSubclass {
            return object(forKey: key).flatMap { try? PropertyListValue($0) }.flatMap(body)
        }
        guard let key = try? Key(key) else { return nil }
        if let result = shared.value(key, body) { return result }
        // A value of another type hides a registered default.
        guard let standard = backing.registered[key], shared.value(key, { _ in true }) == nil
        else { return nil }
        return body(standard)
    }

    /// The value without conversion, or the registered default.
    func read(_ key: String) -> PropertyListValue? { read(key) { $0 } }

    /// A subclass may have overridden `object(forKey:)` and `set(_: Any?, forKey:)`. The class
    /// itself can avoid boxing and unboxing values.
    var isSubclass: Bool { type(of: self) != UbiquitousKeyValueStore.self }

    /// Whether using its backing opens nothing that a test double does without.
    var hasBacking: Bool { own != nil || !isSubclass }

    /// A copy of all values, including those received from other devices, and of the registered
    /// defaults of other keys. Of keys that differ only in Unicode normalisation it has one, like
    /// any dictionary of Swift strings.
    open var dictionaryRepresentation: [String: Any] {
        let values = backing.driver.read { $0.values }
        // Keys that differ only in Unicode normalisation are equal in a Swift dictionary.
        let stored = values.map { ($0.key.string, $0.value.boxed) }
        let registered = backing.registered.map { ($0.key.string, $0.value.boxed) }
        return Dictionary(stored + registered) { first, _ in first }
    }

    // MARK: - Writing

    /// Stores a property-list value; nil removes the key.
    ///
    /// A value that is not a property list, an empty or overlong key, and a write that does not fit
    /// into the store are refused: the old value stays, and the log has the reason. For a write
    /// that does not fit, a notification with the reason
    /// `NSUbiquitousKeyValueStoreQuotaViolationChange` is posted too.
    open func set(_ anObject: Any?, forKey aKey: String) {
        write(aKey, try anObject.map { try PropertyListValue($0) })
    }

    /// Stores a string; nil removes the key. As ``set(_:forKey:)-(Any?,_)``.
    open func set(_ aString: String?, forKey aKey: String) {
        set(aKey, aString) { .string($0) }
    }

    /// Stores data; nil removes the key. As ``set(_:forKey:)-(Any?,_)``.
    open func set(_ aData: Data?, forKey aKey: String) { set(aKey, aData) { .data([UInt8]($0)) } }

    /// Stores an array; nil removes the key. As ``set(_:forKey:)-(Any?,_)``.
    open func set(_ anArray: [Any]?, forKey aKey: String) { set(anArray as Any?, forKey: aKey) }

    /// Stores a dictionary; nil removes the key. As ``set(_:forKey:)-(Any?,_)``.
    open func set(_ aDictionary: [String: Any]?, forKey aKey: String) {
        set(aDictionary as Any?, forKey: aKey)
    }

    /// Stores an integer. As ``set(_:forKey:)-(Any?,_)``.
    open func set(_ value: Int64, forKey aKey: String) { set(aKey, value) { .integer($0) } }

    /// Stores a real number. As ``set(_:forKey:)-(Any?,_)``.
    open func set(_ value: Double, forKey aKey: String) {
        set(aKey, value) { .real(PropertyListValue.canonical($0)) }
    }

    /// Stores a Bool. As ``set(_:forKey:)-(Any?,_)``.
    open func set(_ value: Bool, forKey aKey: String) { set(aKey, value) { .boolean($0) } }

    /// Removes a key. Does nothing if there is no value.
    open func removeObject(forKey aKey: String) { write(aKey, nil) }

    /// Writes for the typed setters, through ``set(_:forKey:)-(Any?,_)`` if a subclass may have
    /// overridden it. That gets a boxed value, because an `Int64` in an `Any` would only cast to
    /// `Int64`.
    private func set<Value>(
        _ key: String, _ value: Value?, _ make: (Value) -> PropertyListValue
    ) {
        if isSubclass {
            set(value.map(make)?.boxed, forKey: key)
        } else {
            write(key, value.map(make))
        }
    }

    /// Writes for both `set` and `removeObject`. Neither calls the other, or a subclass whose `set`
    /// removes the key for nil would recurse without end.
    private func write(_ key: String, _ value: @autoclosure () throws -> PropertyListValue?) {
        do {
            let content: Content = try value().map { .value($0) } ?? .deleted
            let outcome = shared.write(try Key(key), content)
            if !outcome.isComplete { try backing.finish(outcome) }
        } catch {
            refuse(key, error)
        }
    }

    // MARK: - Key-value coding

    // On Apple's systems `NSObject` has these two, which are overridden.
    #if canImport(Darwin)
    /// The same as ``object(forKey:)``.
    open override func value(forKey key: String) -> Any? { object(forKey: key) }

    /// The same as ``set(_:forKey:)-(Any?,_)``.
    open override func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }
    #else
    /// The same as ``object(forKey:)``, under the name that `NSObject` gives it on Apple's systems.
    /// A key path is not resolved.
    open func value(forKey key: String) -> Any? { object(forKey: key) }

    /// The same as ``set(_:forKey:)-(Any?,_)``, under the name of `NSObject`.
    open func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }
    #endif

    // MARK: - Disk and server

    /// Writes memory to disk, reads what other processes wrote, and wakes the sync without its
    /// usual delay. Never waits for the network.
    ///
    /// - Returns: True if memory and disk agree: earlier writes survive the end of the process and
    ///   a power failure. False if the disk failed, or the app has no store identifier.
    @discardableResult
    open func synchronize() -> Bool { backing.synchronize() }
}

#if !canImport(Darwin)
/// Lets code written for Apple's class compile unchanged.
public typealias NSUbiquitousKeyValueStore = UbiquitousKeyValueStore
#endif

extension UbiquitousKeyValueStore {
    /// The value of a key, unboxed. Nil if there is none, or the key is invalid.
    package func value(_ key: String) -> PropertyListValue? {
        guard let key = try? Key(key) else { return nil }
        return shared.value(key) { $0 }
    }

    /// The registered default of a key, which is not stored.
    func registered(_ key: String) -> PropertyListValue? {
        (try? Key(key)).flatMap { backing.registered[$0] }
    }

    package var values: [Key: PropertyListValue] { backing.driver.read { $0.values } }

    package var engineStatus: EngineStatus { backing.driver.status }

    /// See ``SyncEngine/waitingWrites``.
    package var waitingWrites: [Key: PendingWrite] { backing.driver.read { $0.waitingWrites } }

    /// See ``SyncEngine/unconfirmedWrites``.
    package var unconfirmedWrites: [Key: PendingWrite] {
        backing.driver.read { $0.unconfirmedWrites }
    }

    /// See ``SyncEngine/hasConfirmed(_:at:)``.
    package func hasConfirmed(_ writes: [Key: PendingWrite]) -> Bool {
        let now = backing.driver.shared.now()
        return backing.driver.read { $0.hasConfirmed(writes, at: now) }
    }

    /// Reports why a write was refused, or ends the program if it is strict.
    func refuse(_ key: String, _ error: any Error) {
        backing.refuse(UbiquityError(refused: key, error))
    }

    /// Writes several keys as one transaction.
    package func write(_ changes: [Key: Content]) throws(LimitViolation) {
        try write { engine, now throws(LimitViolation) in try engine.write(changes, at: now) }
    }

    /// Does the same in as few transactions as can be sent: one, if possible.
    package func writeInParts(_ changes: [Key: Content]) throws(LimitViolation) {
        try write { engine, now throws(LimitViolation) in
            try engine.writeInParts(changes, at: now)
        }
    }

    /// Writes as one transaction. The body must be short. Until it returns, nothing of the
    /// transaction is on disk or sent.
    package func write(
        _ body: (inout SyncEngine, ClockReading) throws(LimitViolation) -> Void
    ) throws(LimitViolation) { try backing.write(body) }

    /// Whether the store would accept these writes: runs ``writeInParts(_:)`` on a copy.
    package func check(_ changes: [Key: Content]) throws(LimitViolation) {
        let driver = backing.driver
        try driver.read { engine in
            Result { () throws(LimitViolation) in
                var copy = copy engine
                try copy.writeInParts(changes, at: driver.shared.now())
            }
        }.get()
    }

    /// Closes the store's connection and lets other processes take over. For a program that is
    /// about to end.
    package func close() { backing.close() }

    /// Ends abruptly, like a killed process: anything not on disk is lost.
    package func abandon() { backing.abandon() }
}
