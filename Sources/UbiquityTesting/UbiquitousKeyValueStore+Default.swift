// SPDX-License-Identifier: Apache-2.0

public import Ubiquity

extension UbiquitousKeyValueStore {
    /// Makes this store the `UbiquitousKeyValueStore.default`, and the backing of
    /// `UbiquitousKeyValueStore()`, while the body runs: for code that names no store.
    ///
    /// It applies to the body and the tasks that it starts, and to nothing else, so tests may run
    /// in parallel. `FileManager.default.ubiquityIdentityToken` is that of the store's device.
    public func asDefault<Result>(_ body: () throws -> Result) rethrows -> Result {
        try standingForDefault(body)
    }

    /// The same for an asynchronous body.
    public func asDefault<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        try await standingForDefault(body)
    }
}
