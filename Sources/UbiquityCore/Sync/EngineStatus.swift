// SPDX-License-Identifier: Apache-2.0

/// The state of the sync at one moment.
package struct EngineStatus: Hashable, Sendable {
    package var account: String?
    package var isSignedIn: Bool
    package var isLeading: Bool
    /// Another process holds the connection and does not respond.
    package var isHeldUp: Bool
    package var link: LinkStatus
    /// The keys with a write that waits for the server.
    package var pendingKeys: Set<Key>
    package var usage: Usage
    package var limits: StoreLimits
    package var hasCompletedFirstSync: Bool
    /// The reason the disk refused the last save; nil if it did not.
    package var diskFailure: String?
}

extension SyncEngine {
    /// The keys of which the app sees a write of this device that is not confirmed by the server.
    /// Parts of a key are listed by their own keys.
    package var ownRecords: Set<Key> {
        Set(entries.all.lazy.filter { $0.entry.pending != nil }.map(\.key))
    }

    /// The records that wait for the server.
    package var waitingRecords: Set<Key> { waiting }

    package var status: EngineStatus {
        EngineStatus(
            account: meta.account, isSignedIn: isSignedIn, isLeading: isLeading,
            isHeldUp: leaderMonitor.isSilent && isSignedIn && diskFailure == nil, link: linkStatus,
            pendingKeys: Set(waiting.map(\.whole)), usage: usage, limits: meta.limits,
            hasCompletedFirstSync: meta.hasCompletedFirstSync, diskFailure: diskFailure)
    }

    private var linkStatus: LinkStatus {
        var link = meta.link
        if !isSignedIn {
            link.state = .signedOut
            link.nextRetry = nil
        }
        return link
    }
}
