// SPDX-License-Identifier: Apache-2.0

public import Ubiquity

extension UbiquitousKeyValueStore {
    /// While the body runs, this store is what `UbiquitousKeyValueStore.default` gives, and what
    /// `UbiquitousKeyValueStore()` stands for: for code that names no store.
    ///
    /// It holds for the body and the tasks that it starts, and for nobody else, so tests may run beside
    /// each other. `FileManager.default.ubiquityIdentityToken` is that of the store's device, too.
    public func asDefault<Result>(_ body: () throws -> Result) rethrows -> Result {
        try standingForDefault(body)
    }

    /// The same for a body that waits.
    public func asDefault<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        try await standingForDefault(body)
    }
}
