// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
package import UbiquityCore

extension WireChanges {
    package init(_ changes: ChangeSet) {
        self.init()
        records = changes.records.map(WireRecord.init)
        cursor = changes.cursor.text
        serverMilliseconds = UInt64(clamping: changes.serverMilliseconds)
        whole = changes.isWhole
        horizonMilliseconds = UInt64(changes.horizon.milliseconds)
    }
}

extension ChangeSet {
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WireChanges) throws(WireError) {
        self.init(
            records: try [Record](wire.records), cursor: try Cursor(wire: wire.cursor),
            serverMilliseconds: Int64(wireMilliseconds: wire.serverMilliseconds),
            isWhole: wire.whole,
            horizon: HybridTimestamp(
                milliseconds: Int64(wireMilliseconds: wire.horizonMilliseconds)))
    }
}

extension WireConfig {
    package init(_ config: ServerConfig) {
        self.init()
        serverMilliseconds = UInt64(clamping: config.serverMilliseconds)
        limits.storeBytesMax = UInt64(config.limits.storeBytesMax)
        limits.keysMax = UInt64(config.limits.keysMax)
        limits.valueBytesMax = UInt64(config.limits.valueBytesMax)
        limits.pushBytesMax = UInt64(config.limits.pushBytesMax)
        switch config.limits.key {
        case .utf8Bytes(let max): limits.keyBytesMax = UInt64(max)
        case .utf16Units(let max): limits.keyUtf16Max = UInt64(max)
        }
        allowance.burst = UInt64(config.allowance.burst)
        allowance.perSecond = config.allowance.perSecond
        deletionsRememberedSeconds = UInt64(clamping: config.deletionsRememberedSeconds)
        keepAliveSeconds = UInt64(clamping: config.keepAliveSeconds)
    }
}

extension ServerConfig {
    /// A limit that is missing in the message keeps its default.
    package init(_ wire: WireConfig) {
        var limits = StoreLimits()
        func adopt(_ value: UInt64, _ limit: inout Int) {
            if value > 0 { limit = Int(clamping: value) }
        }
        adopt(wire.limits.storeBytesMax, &limits.storeBytesMax)
        adopt(wire.limits.keysMax, &limits.keysMax)
        adopt(wire.limits.valueBytesMax, &limits.valueBytesMax)
        adopt(wire.limits.pushBytesMax, &limits.pushBytesMax)
        if wire.limits.keyUtf16Max > 0 {
            limits.key = .utf16Units(Int(clamping: wire.limits.keyUtf16Max))
        } else if wire.limits.keyBytesMax > 0 {
            limits.key = .utf8Bytes(Int(clamping: wire.limits.keyBytesMax))
        }
        self.init(
            serverMilliseconds: Int64(wireMilliseconds: wire.serverMilliseconds), limits: limits,
            allowance: wire.hasAllowance
                ? Allowance(
                    burst: Int(clamping: wire.allowance.burst),
                    perSecond: wire.allowance.perSecond)
                : Allowance(),
            deletionsRememberedSeconds: Int64(clamping: wire.deletionsRememberedSeconds),
            keepAliveSeconds: Int64(clamping: wire.keepAliveSeconds))
    }
}

extension Int64 {
    /// A server's time in milliseconds since 1970, limited to 48 bits like the timestamps of
    /// writes, so that additions to it cannot overflow.
    package init(wireMilliseconds milliseconds: UInt64) {
        self = Int64(Swift.min(milliseconds, 1 << 48 - 1))
    }
}
