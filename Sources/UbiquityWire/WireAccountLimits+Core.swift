// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

extension WireAccountLimits {
    package init(_ limits: AccountLimits) {
        self.init()
        for (name, value) in limits.values { self[keyPath: name.field] = UInt64(value) }
    }
}

extension AccountLimits {
    /// - Throws: ``AccountLimits/OutOfRange``.
    package init(_ wire: WireAccountLimits) throws(OutOfRange) {
        self.init()
        for name in Name.allCases where wire.has(name) {
            try set(name, to: Int(clamping: wire[keyPath: name.field]))
        }
    }
}

extension AccountLimits.Name {
    fileprivate var field: WritableKeyPath<WireAccountLimits, UInt64> {
        switch self {
        case .storeBytes: \.storeBytesMax
        case .keys: \.keysMax
        case .historyDays: \.historyDays
        case .historyVersions: \.historyVersions
        case .historyBytes: \.historyBytes
        }
    }
}

extension WireAccountLimits {
    fileprivate func has(_ name: AccountLimits.Name) -> Bool {
        switch name {
        case .storeBytes: hasStoreBytesMax
        case .keys: hasKeysMax
        case .historyDays: hasHistoryDays
        case .historyVersions: hasHistoryVersions
        case .historyBytes: hasHistoryBytes
        }
    }
}
