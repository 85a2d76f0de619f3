// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
package import UbiquityCore

/// A store as a mirror of an app's preferences looks at it, all of one moment.
package struct MirroredContent: Sendable {
    package var store: MirroredStore
    package var values: [Key: PropertyListValue]
    /// A write that was refused may fit when either of these is another one.
    package var usage: Usage
    package var limits: StoreLimits
}

extension UbiquitousKeyValueStore {
    /// - Parameter atStart: Whether the app has not used the store yet: only then can its file have
    ///   got lost.
    package func mirrored(atStart: Bool) -> MirroredContent {
        let isFirstFolder = backing.isInFirstFolder
        return backing.driver.read { engine in
            let status = engine.status
            let pact = MirrorPact(
                account: status.account, isSynced: status.hasCompletedFirstSync)
            return MirroredContent(
                store: MirroredStore(
                    pact: pact, isSignedIn: status.isSignedIn,
                    isNew: atStart && isFirstFolder && pact == MirrorPact()
                        && status.usage == Usage()),
                values: engine.values, usage: status.usage, limits: status.limits)
        }
    }

    /// Equal for all instances of one store of this process, and for no others that are open.
    package var mirroredName: String { "\(ObjectIdentifier(backing))" }

    /// The store's identifier; empty for an app that has none.
    package var mirroredIdentifier: String { backing.identifier?.string ?? "" }

    /// Tells the log, and who listens for errors.
    package func report(_ error: UbiquityError) { backing.report(error) }
}

extension StoreBacking {
    /// Whether no account that was on this device before has another folder; in memory too.
    fileprivate var isInFirstFolder: Bool {
        let folder = driver.folder
        return folder.isEmpty || folder == DeviceState().folder
    }
}
