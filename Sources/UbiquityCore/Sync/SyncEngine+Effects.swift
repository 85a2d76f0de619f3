// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// What the driver must do. Each is answered by the event that its case names.
    package enum Effect: Hashable, Sendable {
        /// ``Event/saved(version:)``, ``Event/saveConflicted(_:)`` or ``Event/saveFailed(_:)``.
        case save(SaveBatch)
        /// Opens a stream of this number: ``Event/streamReceived(_:_:)`` and, at last,
        /// ``Event/streamEnded(_:_:)``. Nil: from the whole store.
        case listen(stream: Int, since: Cursor?)
        /// Ends that stream; no event answers.
        case hangUp(stream: Int)
        /// Sends a push of this number: ``Event/pushAnswered(_:_:)`` or ``Event/pushFailed(_:_:)``.
        case push(Int, Push)
        /// A pull of this number: ``Event/pulled(_:_:)`` or ``Event/pullFailed(_:_:)``. Nil: of the whole
        /// store. With the server's configuration, which else a stream brings.
        case pull(Int, since: Cursor?, withConfig: Bool)
        /// ``Event/notified``, when the app's observers have returned.
        case notify(Notice)
        /// The round trip of ``requestSync(at:)`` is done, or failed.
        case finishSync(id: Int, LinkFailure?)
    }

    package enum Event: Hashable, Sendable {
        case saved(version: Int64)
        case saveConflicted(DiskChanges)
        case saveFailed(String)
        /// Another process saved.
        case diskChanged(DiskChanges)

        /// This process holds the lease, or not any more. When it gets the lease, it must have told
        /// of all changes on the disk before.
        case leading(Bool)
        case signedIn(account: String, device: DeviceID)
        case signedOut
        /// The device turns to another account: nothing of this one is sent any more. When all is
        /// saved, see ``SyncEngine/isSaved``, the process turns to the other account's disk with
        /// ``SyncEngine/move(to:at:)``.
        case leaving

        case streamReceived(Int, StreamMessage)
        /// Nil: the server ended it in peace.
        case streamEnded(Int, LinkFailure?)
        case pushAnswered(Int, PushAnswer)
        case pushFailed(Int, LinkFailure)
        case pulled(Int, ChangeSet)
        case pullFailed(Int, LinkFailure)

        /// The app's observers have returned from the notice.
        case notified
        /// Try now what waits for its next attempt.
        case hurry
    }

    package mutating func handle(_ event: Event, at now: ClockReading) {
        switch event {
        case .saved(let version): saved(version: version)
        case .saveConflicted(let changes): saveConflicted(changes, at: now)
        case .saveFailed(let reason): saveFailed(reason, at: now)
        case .diskChanged(let changes): diskChanged(changes, at: now)
        case .leading(let isLeading): lead(isLeading, at: now)
        case .signedIn(let account, let device): signIn(account: account, device: device)
        case .signedOut: signOut()
        case .leaving: leave()
        case .streamReceived(let stream, let message): received(message, on: stream, at: now)
        case .streamEnded(let stream, let failure): streamEnded(stream, failure, at: now)
        case .pushAnswered(let number, let answer): pushAnswered(number, answer, at: now)
        case .pushFailed(let number, let failure): pushFailed(number, failure, at: now)
        case .pulled(let number, let changes): pulled(number, changes, at: now)
        case .pullFailed(let number, let failure): pullFailed(number, failure, at: now)
        case .notified: notices.posted()
        case .hurry: hurry(at: now)
        }
    }

    /// What to do now; nil: nothing until the next event or ``nextWake``.
    package mutating func nextEffect(at now: ClockReading) -> Effect? {
        checkRequests()
        checkLeader(at: now)
        if let notice = notices.next(at: now.uptime) { return .notify(notice) }
        if !finished.isEmpty {
            let (id, failure) = finished.removeFirst()
            return .finishSync(id: id, failure)
        }
        if let batch = nextSave(at: now) { return .save(batch) }
        if let effect = nextLinkEffect(at: now) { return effect }
        if let push = nextPush(at: now) { return .push(push.number, push.push) }
        return nextPull(at: now)
    }

    /// When time alone will make something possible, by the uptime in milliseconds; nil: never.
    package var nextWake: Int64? {
        [
            saveRetryAt, linkRetryAt, pushAt, pollAt, lagEndsAt, leaderWatch.lookAt, notices.wake,
        ].compactMap(\.self).min()
    }
}

/// What a stream brings.
package enum StreamMessage: Hashable, Sendable {
    /// Bytes came, of what is not whole yet. Not told more often than each second.
    case progress
    case changes(ChangeSet)
    /// The listener has everything up to this cursor.
    case ready(Cursor, ServerConfig)
    /// The listener missed something and must ask again from its cursor.
    case resync
}
