// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A store that has values on this device and in the account that it signs in to.
package struct FirstSyncStore: Hashable, Sendable {
    package var identifier: StoreIdentifier
    package var comparison: FirstSyncComparison
    /// The server's milliseconds since 1970.
    var now: Int64
}

extension DeviceHome {
    /// Compares what this device has with what a new account has, before the first sync. Changes
    /// nothing.
    ///
    /// Empty if the account does not get this device's values, or has none. Leaves out stores that
    /// the account may not use.
    /// - Parameters:
    ///   - account: The account, to which this device is not signed in yet.
    ///   - keyring: The keys of the account; nil if it is not sealed.
    /// - Throws: ``LinkFailure``, ``HomeError``, `LocalStorageError`.
    package func firstSync(
        of account: SignedInAccount, keyring: Keyring? = nil
    ) async throws -> [FirstSyncStore] {
        let state = try load()
        let known = state.folders[ExactString(account.account)]?.string
        guard known != nil || !state.isOwned(state.folder) else { return [] }
        var stores: [FirstSyncStore] = []
        for (name, path) in try storeFiles(in: known ?? state.folder) {
            guard let identifier = try? StoreIdentifier(name) else { continue }
            let inspection = try StoreInspection(path: path)
            guard !inspection.meta.hasCompletedFirstSync else { continue }
            do throws(LinkFailure) {
                var changes = try await AccountClient.store(identifier, account, keyring)
                changes.records.removeAll { $0.content.isSealed }
                let comparison = FirstSyncComparison(inspection.entries, changes.records)
                guard !comparison.onlyHere.isEmpty || !comparison.different.isEmpty else {
                    continue
                }
                stores.append(
                    FirstSyncStore(
                        identifier: identifier, comparison: comparison,
                        now: changes.serverMilliseconds))
            } catch {
                // Another app's store, an app that the server does not accept, or a store that is not
                // sealed yet.
                guard error.kind == .refused || error.code == "store-unsealed" else { throw error }
            }
        }
        return stores
    }

    /// Sends this device's values that are to be kept, so that the first sync finds them in the
    /// account. It can be repeated.
    /// - Throws: ``LinkFailure``, also if the server refuses one of them.
    package func keep(
        _ choice: FirstSyncChoice, in stores: [FirstSyncStore], of account: SignedInAccount,
        keyring: Keyring? = nil
    ) async throws(LinkFailure) {
        guard let device = DeviceID(account.device) else { return }
        for store in stores {
            let link = HTTPTransport(store.identifier, of: account)
            let sealer = try keyring?.neededSealer(of: store.identifier)
            var rest = store.comparison.writes(keeping: choice, now: store.now, by: device)[...]
            while !rest.isEmpty {
                var push = Push(Array(rest.prefix(Self.keysPerPush)))
                if let sealer { push = sealer.seal(push) }
                rest = rest.dropFirst(Self.keysPerPush)
                for case .refused(let refusal) in try await link.push(
                    push, within: IntakeLimits(nil)
                ).results {
                    throw LinkFailure(.refused, refusal.detail)
                }
            }
        }
    }

    /// Few enough for a push, and enough for a store's keys in a few pushes.
    private static let keysPerPush = 128
}
