// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// What fits into one store, see ``TestServer/limits``. At first what any server has.
public struct TestLimits: Hashable, Sendable {
    /// Bytes of all values of a store together.
    public var storeBytesMax: Int
    /// How many keys a store may have.
    public var keysMax: Int
    /// Bytes of one value.
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
