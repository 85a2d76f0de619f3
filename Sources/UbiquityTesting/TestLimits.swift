// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The limits of one store, see ``TestServer/limits``. Initially a server's defaults.
public struct TestLimits: Hashable, Sendable {
    /// The maximum size of all values of a store, in bytes.
    public var storeBytesMax: Int
    /// The maximum number of keys in a store.
    public var keysMax: Int
    /// The maximum size of one value, in bytes.
    public var valueBytesMax: Int

    init(_ limits: StoreLimits) {
        storeBytesMax = limits.storeBytesMax
        keysMax = limits.keysMax
        valueBytesMax = limits.valueBytesMax
    }

    func apply(to limits: inout StoreLimits) {
        limits.storeBytesMax = storeBytesMax
        limits.keysMax = keysMax
        limits.valueBytesMax = valueBytesMax
    }
}
