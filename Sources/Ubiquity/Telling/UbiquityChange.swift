// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Some keys have other values now, for one reason.
public struct UbiquityChange: Hashable, Sendable {
    /// Where a change came from.
    public enum Origin: String, Hashable, Sendable {
        /// This process's own write.
        case own
        /// Another device, or another process of this one.
        case elsewhere
        /// The first download from the server.
        case initialSync
        /// A write was refused because the store is full: the keys have the values from before it.
        case quotaViolation
        /// The device was signed out, or in to another account, whose values replace the others.
        case accountChange
    }

    /// Where it came from.
    public var origin: Origin
    /// The keys, in their order. Empty for an account change that left all values as they were.
    public var keys: [String]

    /// For an app's own tests.
    public init(origin: Origin, keys: [String]) {
        self.origin = origin
        self.keys = keys
    }

    init(_ notice: Notice) {
        self.init(origin: Origin(notice.reason), keys: notice.keys.sorted().map(\.string))
    }
}

extension UbiquityChange.Origin {
    fileprivate init(_ reason: Notice.Reason) {
        switch reason {
        case .ownWrite: self = .own
        case .serverChange: self = .elsewhere
        case .initialSync: self = .initialSync
        case .quotaViolation: self = .quotaViolation
        case .accountChange: self = .accountChange
        }
    }

    /// The number in the notification's `userInfo`; nil: no notification tells of it.
    var notificationReason: Int? {
        switch self {
        case .own: nil
        case .elsewhere: NSUbiquitousKeyValueStoreServerChange
        case .initialSync: NSUbiquitousKeyValueStoreInitialSyncChange
        case .quotaViolation: NSUbiquitousKeyValueStoreQuotaViolationChange
        case .accountChange: NSUbiquitousKeyValueStoreAccountChange
        }
    }
}
