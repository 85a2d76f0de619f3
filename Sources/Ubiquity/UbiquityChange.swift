// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// A change of the values of some keys, for one reason.
public struct UbiquityChange: Hashable, Sendable {
    /// The origin of a change.
    public enum Origin: String, Hashable, Sendable {
        /// This process's own write.
        case own
        /// Another device, or another process of this one.
        case elsewhere
        /// The first download from the server.
        case initialSync
        /// A write was refused because it exceeds a limit, such as that of the whole store. The keys
        /// have their previous values again.
        case quotaViolation
        /// The device was signed out, or signed in to another account, whose values replace the
        /// others.
        case accountChange
    }

    /// The origin of the change.
    public var origin: Origin
    /// The keys, sorted. Empty for an account change that changed no values.
    public var keys: [String]

    /// Creates a change, for an app's own tests.
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

    /// The number in the notification's `userInfo`; nil if no notification is posted.
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
