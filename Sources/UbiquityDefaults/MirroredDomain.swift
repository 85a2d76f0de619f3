// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity
internal import UbiquityCore

/// Preferences as a mirror reads and writes them: what was set, never a registered default or a
/// program's argument; and the bookkeeping that lies among them.
///
/// Belongs to the mirror's queue. `@unchecked Sendable` because `UserDefaults` guards itself, which
/// Foundation on Linux does not say.
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
        seen = file.look
        #endif
    }

    // MARK: - Reading

    /// All of one moment. Cost on Linux: about 3 µs a key, those of the bookkeeping included.
    func content() -> DomainContent {
        DomainContent(
            values: defaults.persistentDomain(forName: domain.name) ?? [:],
            bookkeeping: bookkeeping)
    }

    /// Takes in what other processes wrote, if they did. The systems of Apple do by themselves.
    func lookAtFile() {
        #if !canImport(Darwin)
        guard file.look != seen else { return }
        file.exclusively {
            defaults.synchronize()
            // What was written is read at the first question for it.
            _ = content()
        }
        seen = file.look
        #endif
    }

    /// Writes to the disk what was set. The systems of Apple do by themselves.
    func flush() {
        #if !canImport(Darwin)
        file.exclusively { _ = defaults.synchronize() }
        seen = file.look
        #endif
    }

    // MARK: - Writing

    /// - Parameter old: What is there now.
    func write(_ value: PropertyListValue?, over old: PropertyListValue?, forKey name: String) {
        guard let value else { return defaults.removeObject(forKey: name) }
        #if !canImport(Darwin)
        // Else the old number would stay.
        if let old, value.looksEqual(to: old) { defaults.removeObject(forKey: name) }
        #endif
        defaults.set(value.boxed, forKey: name)
    }

    /// - Parameter value: Nil: nothing is agreed on.
    func agree(
        on value: PropertyListValue?, forKey name: String, keepsValue: Bool,
        count: KeptCount? = nil
    ) {
        let entry = value.map {
            Agreement($0, keepsValue: keepsValue, count: count).propertyList.boxed
        }
        defaults.set(entry, forKey: bookkeeping.name(of: name))
    }

    func agree(with pact: MirrorPact) {
        defaults.set(pact.propertyList.boxed, forKey: bookkeeping.pactName)
    }
}
