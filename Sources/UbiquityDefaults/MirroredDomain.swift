// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity
internal import UbiquityCore

/// Reads and writes preferences for a mirror: values that are set, never registered defaults or
/// program arguments; and the bookkeeping among them.
///
/// Confined to the mirror's queue. `@unchecked Sendable` because `UserDefaults` is thread-safe,
/// which Foundation on Linux does not declare.
final class MirroredDomain: @unchecked Sendable {
    let defaults: UserDefaults
    private let domain: DefaultsDomain
    private let bookkeeping: Bookkeeping
    #if !canImport(Darwin)
    private let file: PreferencesFile
    private var seen: PreferencesFile.Look?
    #endif

    /// - Throws: As ``DefaultsDomain/open()``.
    init(_ domain: DefaultsDomain, store: String) throws {
        self.domain = domain
        defaults = try domain.open()
        bookkeeping = Bookkeeping(store: store)
        #if !canImport(Darwin)
        file = PreferencesFile(domain)
        // Again, if a killed process left the file half written.
        file.exclusively { _ = defaults.synchronize() }
        seen = file.look
        #endif
    }

    // MARK: - Reading

    /// A consistent snapshot. Cost on Linux: about 3 µs for each key, bookkeeping included.
    func content() -> DomainContent {
        DomainContent(
            values: defaults.persistentDomain(forName: domain.name) ?? [:],
            bookkeeping: bookkeeping)
    }

    /// Reads what other processes wrote, if anything. Apple's systems do this automatically.
    func lookAtFile() {
        #if !canImport(Darwin)
        guard file.look != seen else { return }
        file.exclusively {
            defaults.synchronize()
            // Written values are read with the first access to them.
            _ = content()
        }
        seen = file.look
        #endif
    }

    /// Writes changes to disk. Apple's systems do this automatically.
    func flush() {
        #if !canImport(Darwin)
        file.exclusively { _ = defaults.synchronize() }
        seen = file.look
        #endif
    }

    // MARK: - Writing

    /// - Parameter old: The current value.
    func write(_ value: PropertyListValue?, over old: PropertyListValue?, forKey name: String) {
        guard let value else { return defaults.removeObject(forKey: name) }
        #if !canImport(Darwin)
        // Otherwise the old number would stay.
        if let old, value.looksEqual(to: old) { defaults.removeObject(forKey: name) }
        #endif
        defaults.set(value.boxed, forKey: name)
    }

    /// - Parameter value: Nil to remove the baseline.
    func setBaseline(
        to value: PropertyListValue?, forKey name: String, keepsValue: Bool,
        count: ExternalCount? = nil
    ) {
        let entry = value.map {
            KeyBaseline($0, keepsValue: keepsValue, count: count).propertyList.boxed
        }
        defaults.set(entry, forKey: bookkeeping.name(of: name))
    }

    func setBaseline(to baseline: MirrorBaseline) {
        defaults.set(baseline.propertyList.boxed, forKey: bookkeeping.baselineName)
    }
}

/// A snapshot of some preferences.
struct DomainContent {
    private let values: [String: Any]
    /// By key.
    let keyBaselines: [String: KeyBaseline]
    let baseline: MirrorBaseline?

    init(values: [String: Any], bookkeeping: Bookkeeping) {
        var keyBaselines: [String: KeyBaseline] = [:]
        for (name, value) in values {
            guard let key = bookkeeping.key(of: name) else { continue }
            keyBaselines[key] = (try? PropertyListValue(value)).flatMap(KeyBaseline.init)
        }
        self.keyBaselines = keyBaselines
        self.values = values
        baseline = values[bookkeeping.baselineName].flatMap { try? PropertyListValue($0) }
            .flatMap(MirrorBaseline.init)
    }

    var names: some Collection<String> { values.keys }

    /// Nil if it is not set.
    /// - Throws: `UnsupportedValue`.
    func value(_ name: String) throws(UnsupportedValue) -> PropertyListValue? {
        guard let value = values[name] else { return nil }
        return try PropertyListValue(value)
    }
}

extension PropertyListValue {
    /// The fingerprint for comparisons. Values that the preferences cannot tell apart have the same
    /// one.
    var mark: ValueFingerprint {
        #if canImport(Darwin)
        ValueFingerprint(self)
        #else
        ValueFingerprint(preferencesForm)
        #endif
    }
}
