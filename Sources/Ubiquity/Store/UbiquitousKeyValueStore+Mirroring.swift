// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
package import UbiquityCore

/// A snapshot of a store for the mirror of an app's preferences.
package struct MirroredContent: Sendable {
    package var store: MirroredStore
    package var values: [Key: PropertyListValue]
    /// If either of these changes, a write that was refused may fit.
    package var usage: Usage
    package var limits: StoreLimits
}

extension UbiquitousKeyValueStore {
    /// - Parameter atStart: Whether the app has not used the store yet. Only then can its file have
    ///   been lost.
    package func mirrored(atStart: Bool) -> MirroredContent {
        let isFirstFolder = backing.isInFirstFolder
        return backing.driver.read { engine in
            let status = engine.status
            let baseline = MirrorBaseline(
                account: status.account, isSynced: status.hasCompletedFirstSync)
            return MirroredContent(
                store: MirroredStore(
                    baseline: baseline, isSignedIn: status.isSignedIn,
                    isNew: atStart && isFirstFolder && baseline == MirrorBaseline()
                        && status.usage == Usage()),
                values: engine.values, usage: status.usage, limits: status.limits)
        }
    }

    /// Equal for all instances of one open store of this process, and for no others.
    package var mirroredName: String { "\(ObjectIdentifier(backing))" }

    /// The store's identifier; empty for an app without one.
    package var mirroredIdentifier: String { backing.identifier?.string ?? "" }

    /// Reports an error to the log and to observers of errors.
    package func report(_ error: UbiquityError) { backing.report(error) }
}

extension StoreBacking {
    /// Whether the store is in the first folder, so no earlier account of this device has one; true
    /// in memory too.
    fileprivate var isInFirstFolder: Bool {
        let folder = driver.folder
        return folder.isEmpty || folder == DeviceState().folder
    }
}
