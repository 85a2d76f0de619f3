// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

extension WireAccountLimits {
    package init(_ limits: AccountLimits) {
        self.init()
        for (name, value) in limits.values { self[keyPath: name.field.value] = UInt64(value) }
    }
}

extension AccountLimits {
    /// - Throws: ``AccountLimits/OutOfRange``.
    package init(_ wire: WireAccountLimits) throws(OutOfRange) {
        self.init()
        for name in Name.allCases where wire[keyPath: name.field.has] {
            try set(name, to: Int(clamping: wire[keyPath: name.field.value]))
        }
    }
}

extension AccountLimits.Name {
    fileprivate var field:
        (
            value: WritableKeyPath<WireAccountLimits, UInt64>,
            has: KeyPath<WireAccountLimits, Bool>
        )
    {
        switch self {
        case .storeBytes: (\.storeBytesMax, \.hasStoreBytesMax)
        case .keys: (\.keysMax, \.hasKeysMax)
        case .historyDays: (\.historyDays, \.hasHistoryDays)
        case .historyVersions: (\.historyVersions, \.hasHistoryVersions)
        case .historyBytes: (\.historyBytes, \.hasHistoryBytes)
        }
    }
}
