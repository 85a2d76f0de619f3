// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import Logging
package import UbiquityCore

/// Small values that follow a person across their devices.
///
/// It does what Apple's `NSUbiquitousKeyValueStore` does, under the same names. Reads and writes are
/// local and never wait for the network. A write is in memory when the call returns, on disk within
/// moments, and on the server when there is one to reach.
///
/// An app may subclass it for its tests: the typed setters go through ``set(_:forKey:)-(Any?,_)``,
/// the typed getters through ``object(forKey:)``. With ``removeObject(forKey:)`` these are all that
/// a subclass needs to override; none of the three calls another.
///
/// Safe to call from any thread. `@unchecked Sendable` because it is open: its own properties are set
/// before an initialiser returns, never again, and their types guard themselves; a subclass that adds
/// state must guard it. An `NSObject`, as Apple's is, for existing code compares stores, keeps them in
/// sets and passes them as objects.
open class UbiquitousKeyValueStore: NSObject, @unchecked Sendable {
    /// Nil: that of the default store, which a test double that overrides all it is asked for never
    /// opens.
    private var own: StoreBacking?
    /// That of `own`, at hand for the calls that must be fast.
    private var ownMemory: EngineMemory?

    /// Shared by all instances with the same identifier and home.
    var backing: StoreBacking { own ?? DefaultStore.shared.store.backing }

    fileprivate var memory: EngineMemory { ownMemory ?? DefaultStore.shared.store.memory }

    /// The app's one store.
    ///
    /// Its identifier comes from ``configureDefault(_:)``, else from where
    /// ``UbiquityConfiguration/identifier`` says. Without one it works on this machine alone, says so
    /// in the log, and ``synchronize()`` is false.
    open class var `default`: UbiquitousKeyValueStore { DefaultStore.shared.store }

    /// Sets up the store that ``default`` gives. To be called before the first use of it.
    ///
    /// - Throws: ``UbiquityError`` as ``init(configuration:)`` does; and if the default store is in
    ///   use already.
    public static func configureDefault(_ configuration: UbiquityConfiguration) throws {
        try DefaultStore.shared.configure(configuration)
    }

    /// Another object for what ``default`` holds; never a second store.
    ///
    /// The only designated initialiser, as in Apple's class: Swift then calls it by itself at the end
    /// of a subclass's `init()`.
    public override init() { super.init() }

    /// A further store, by its identifier.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/invalid`` for a malformed identifier, and
    ///   ``UbiquityError/Code/storage`` if the local file cannot be opened. The file is left as it is.
    public convenience init(identifier: String) throws {
        try self.init(configuration: UbiquityConfiguration(identifier: identifier))
    }

    /// A further store, as configured. Without an identifier it is as ``default`` is without one.
    ///
    /// - Throws: As ``init(identifier:)``.
    public convenience init(configuration: UbiquityConfiguration) throws {
        self.init(backing: try StoreBacking.open(configuration))
    }

    convenience init(backing: StoreBacking) {
        self.init()
        (own, ownMemory) = (backing, backing.driver.memory)
        backing.audience.adopt(self)
    }

    /// A store on a device and in surroundings of one's own: for tests of apps.
    /// - Throws: ``UbiquityError`` as ``init(identifier:)`` does.
    package convenience init(
        on device: any StoreDevice, runtime: StoreRuntime, configuration: UbiquityConfiguration
    ) throws {
        self.init(
            backing: try StoreBacking(
                configuration.identity(), on: device, runtime, configuration))
    }

    // MARK: - Reading

    /// The value of a key as Foundation boxes it: `NSString`, `NSNumber`, `NSDate`, `NSData`,
    /// `NSArray`, `NSDictionary`. Nil if there is none.
    open func object(forKey aKey: String) -> Any? { value(aKey)?.boxed }

    /// The string of a key; a number as its text, `true` as "1". Nil for any other type, and where
    /// there is none.
    open func string(forKey aKey: String) -> String? { read(aKey) { $0.asString } }

    /// The array of a key, its elements boxed as ``object(forKey:)`` boxes. Nil for any other type.
    open func array(forKey aKey: String) -> [Any]? { read(aKey)?.boxedArray }

    /// The dictionary of a key, its values boxed as ``object(forKey:)`` boxes. Nil for any other type.
    open func dictionary(forKey aKey: String) -> [String: Any]? {
        read(aKey)?.boxedDictionary
    }

    /// The data of a key. Nil for any other type.
    open func data(forKey aKey: String) -> Data? {
        if case .data(let bytes) = read(aKey) { Data(bytes) } else { nil }
    }

    /// The integer of a key; reals lose their fraction, strings give their leading digits, `true` is
    /// 1. 0 for anything else; what lies outside of `Int64` becomes its nearest end.
    open func longLong(forKey aKey: String) -> Int64 { read(aKey) { $0.asInt64 } ?? 0 }

    /// The number of a key; strings give their leading number, `true` is 1. 0 for anything else.
    open func double(forKey aKey: String) -> Double { read(aKey) { $0.asDouble } ?? 0 }

    /// The truth of a key: numbers are true when not zero, strings by `NSString.boolValue`. False for
    /// anything else.
    open func bool(forKey aKey: String) -> Bool { read(aKey) { $0.asBool } ?? false }

    /// What typed getters read: through ``object(forKey:)`` where a subclass may have overridden it.
    ///
    /// - Parameter body: Must be short: it is called with the store's lock held.
    @inline(__always)
    private func read<Result: Sendable>(
        _ key: String, _ body: (PropertyListValue) -> Result?
    ) -> Result? {
        if isSubclass {
            return object(forKey: key).flatMap { try? PropertyListValue($0) }.flatMap(body)
        }
        guard let key = try? Key(key) else { return nil }
        return memory.value(key, body)
    }

    /// The value as it is.
    func read(_ key: String) -> PropertyListValue? { read(key) { $0 } }

    /// A subclass may have overridden `object(forKey:)` and `set(_: Any?, forKey:)`; the store's
    /// own class need not box a value and take it out of its box again.
    var isSubclass: Bool { type(of: self) != UbiquitousKeyValueStore.self }

    /// A copy of all values, those received from other devices included. Of keys that differ in
    /// Unicode normalisation only it has one, as any dictionary of Swift strings.
    open var dictionaryRepresentation: [String: Any] {
        let values = backing.driver.read { $0.values }
        // Keys that differ in Unicode normalisation only are one to Swift's dictionary.
        return Dictionary(values.map { ($0.key.string, $0.value.boxed) }) { first, _ in first }
    }

    // MARK: - Writing

    /// Stores a property-list value; nil removes the key.
    ///
    /// A value that is no property list, a key that is empty or too long, and a write that does not
    /// fit into the store are refused: the old value stays, and the log says why. A write that does
    /// not fit is told by a notification with the reason
    /// `NSUbiquitousKeyValueStoreQuotaViolationChange` too.
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

    /// Removes a key. Nothing happens where there is none.
    open func removeObject(forKey aKey: String) { write(aKey, nil) }

    /// What typed setters do: through ``set(_:forKey:)-(Any?,_)`` where a subclass may have overridden
    /// it, which then gets the value boxed: an `Int64` in an `Any` would cast to `Int64` alone.
    private func set<Value>(
        _ key: String, _ value: Value?, _ make: (Value) -> PropertyListValue
    ) {
        if isSubclass {
            set(value.map(make)?.boxed, forKey: key)
        } else {
            write(key, value.map(make))
        }
    }

    /// What `set` and `removeObject` both do. Neither calls the other: a subclass whose `set`
    /// removes the key when it is given nil would be called again, without end.
    private func write(_ key: String, _ value: @autoclosure () throws -> PropertyListValue?) {
        do {
            let content: Content = try value().map { .value($0) } ?? .deleted
            let outcome = memory.write(try Key(key), content)
            if outcome.mustRun { backing.driver.startRun() }
            if let violation = outcome.violation { throw violation }
            if !outcome.misfits.isEmpty { backing.reportMisfits(outcome.misfits) }
        } catch {
            refuse(key, error)
        }
    }

    // MARK: - Key-value coding

    // `NSObject` has the two on Apple's systems, where they are overridden, and not elsewhere.
    #if canImport(Darwin)
    /// The same as ``object(forKey:)``.
    open override func value(forKey key: String) -> Any? { object(forKey: key) }

    /// The same as ``set(_:forKey:)-(Any?,_)``.
    open override func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }
    #else
    /// The same as ``object(forKey:)``: existing code reaches a store by the names that
    /// `NSObject` gives to every class of Apple's. A key path is not taken apart.
    open func value(forKey key: String) -> Any? { object(forKey: key) }

    /// The same as ``set(_:forKey:)-(Any?,_)``, under the name of `NSObject`'s.
    open func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }
    #endif

    // MARK: - Disk and server

    /// Writes memory to the disk, takes in what other processes wrote, and wakes the sync without
    /// its usual delay. Never waits for the network.
    ///
    /// - Returns: True if memory and disk agree: what was written survives the process and the loss
    ///   of power. False if the disk refused, or the app has no store identifier.
    @discardableResult
    open func synchronize() -> Bool { backing.synchronize() }
}

extension UbiquitousKeyValueStore {
    /// The value of a key, unboxed. Nil if there is none, or the string cannot be a key.
    package func value(_ key: String) -> PropertyListValue? {
        guard let key = try? Key(key) else { return nil }
        return memory.value(key) { $0 }
    }

    package var values: [Key: PropertyListValue] { backing.driver.read { $0.values } }

    package var engineStatus: EngineStatus { backing.driver.status }

    /// See ``SyncEngine/waitingWrites``.
    package var waitingWrites: [Key: PendingWrite] { backing.driver.read { $0.waitingWrites } }

    /// See ``SyncEngine/agrees(on:at:)``.
    package func agrees(on writes: [Key: PendingWrite]) -> Bool {
        let now = backing.driver.memory.now()
        return backing.driver.read { $0.agrees(on: writes, at: now) }
    }

    /// Says why a write was not done, or ends the program where the app asked for that.
    func refuse(_ key: String, _ error: any Error) {
        backing.refuse(UbiquityError(refused: key, error))
    }

    /// Writes several keys as one transaction.
    package func write(_ changes: [Key: Content]) throws(LimitViolation) {
        try write { engine, now throws(LimitViolation) in try engine.write(changes, at: now) }
    }

    /// Writes as one transaction. Until the body, which must be short, returns, nothing of it is on the disk
    /// or sent.
    package func write(
        _ body: (inout SyncEngine, ClockReading) throws(LimitViolation) -> Void
    ) throws(LimitViolation) { try backing.write(body) }

    /// Whether the store would take these as one transaction: what ``write(_:)`` does, on a copy.
    package func check(_ changes: [Key: Content]) throws(LimitViolation) {
        let driver = backing.driver
        try driver.read { engine in
            Result { () throws(LimitViolation) in
                var copy = copy engine
                try copy.write(changes, at: driver.memory.now())
            }
        }.get()
    }

    /// Ends the store's connection and lets other processes take over. For a program that ends.
    package func close() { backing.close() }

    /// Ends without a word, as a process does that is killed: what is not on the disk is lost.
    package func abandon() { backing.abandon() }

    /// Stands for the default store while the body runs, in its task and those that it starts.
    package func standingForDefault<Result>(_ body: () throws -> Result) rethrows -> Result {
        try DefaultStore.replace(by: self, body)
    }

    package func standingForDefault<Result>(
        _ body: () async throws -> Result
    ) async rethrows -> Result { try await DefaultStore.replace(by: self, body) }
}
