// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// An action for the driver. Each is answered by the event that its case names.
    package enum Effect: Hashable, Sendable {
        /// ``Event/saved(version:)``, ``Event/saveConflicted(_:)`` or ``Event/saveFailed(_:)``.
        case save(SaveBatch)
        /// Opens a stream of this number: ``Event/streamReceived(_:_:)`` and, at last,
        /// ``Event/streamEnded(_:_:)``. A nil cursor asks for the whole store. `isSaved` tells the
        /// server that everything up to the cursor is on disk.
        case listen(stream: Int, since: Cursor?, isSaved: Bool)
        /// Ends that stream. There is no answer.
        case hangUp(stream: Int)
        /// Sends a push of this number: ``Event/pushAnswered(_:_:)`` or ``Event/pushFailed(_:_:)``.
        case push(Int, Push)
        /// Makes a pull of this number: ``Event/pulled(_:_:)`` or ``Event/pullFailed(_:_:)``. The
        /// cursor is as for a stream. The server's configuration can be included, which otherwise
        /// comes by a stream.
        case pull(Int, since: Cursor?, isSaved: Bool, withConfig: Bool)
        /// Posts a notice: ``Event/notified`` when the app's observers have returned.
        case notify(Notice)
        /// The round trip of ``requestSync(at:)`` has succeeded or failed.
        case finishSync(id: Int, LinkFailure?)
    }

    package enum Event: Hashable, Sendable {
        case saved(version: Int64)
        case saveConflicted(DiskChanges)
        case saveFailed(String)
        /// Another process saved.
        case diskChanged(DiskChanges)

        /// Whether this process holds the lease now. When it gets the lease, it must first have
        /// reported all changes on disk.
        case leading(Bool)
        /// The keys are nil if the account is not sealed, or the device does not have them. If it is
        /// known to be sealed, see ``DeviceState/sealedAccounts``, nothing is sent without them. If not, a
        /// store that was sealed is so no more.
        case signedIn(
            account: String, device: DeviceID, keyring: Keyring? = nil, isSealed: Bool = false)
        case signedOut
        /// The device is switching to another account: nothing of this account is sent any more.
        /// When everything is saved, see ``SyncEngine/isSaved``, the process switches to the other
        /// account's disk with ``SyncEngine/move(to:at:)``.
        case leaving

        case streamReceived(Int, StreamMessage)
        /// A nil failure means that the server ended it normally.
        case streamEnded(Int, LinkFailure?)
        case pushAnswered(Int, PushAnswer)
        case pushFailed(Int, LinkFailure)
        case pulled(Int, ChangeSet)
        case pullFailed(Int, LinkFailure)

        /// The app's observers have returned from the notice.
        case notified
        /// Retry now whatever waits for its next attempt.
        case hurry
    }

    package mutating func handle(_ event: Event, at now: ClockReading) {
        switch event {
        case .saved(let version): saved(version: version, at: now)
        case .saveConflicted(let changes): saveConflicted(changes, at: now)
        case .saveFailed(let reason): saveFailed(reason, at: now)
        case .diskChanged(let changes): diskChanged(changes, at: now)
        case .leading(let isLeading): lead(isLeading, at: now)
        case .signedIn(let account, let device, let keyring, let isSealed):
            signIn(
                account: account, device: device, keyring: keyring, isSealed: isSealed, at: now)
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

    /// The next action; nil if there is none until the next event or ``nextWake``.
    package mutating func nextEffect(at now: ClockReading) -> Effect? {
        if isLeading, isSignedIn, !hasKey { lock() }
        if let notice = nextNotice(at: now) { return .notify(notice) }
        if !finished.isEmpty {
            let (id, failure) = finished.removeFirst()
            return .finishSync(id: id, failure)
        }
        if let batch = nextSave(at: now) { return .save(batch) }
        if let effect = nextLinkEffect(at: now) { return effect }
        if let push = nextPush(at: now) {
            return .push(push.number, sealer?.seal(push.push) ?? push.push)
        }
        if let pull = nextPull(at: now) { return pull }
        // What these have changed without an action: no other event may come that would save it.
        return nextSave(at: now).map(Effect.save)
    }

    /// The next action if it is a notice, which is always the first.
    mutating func nextNotice(at now: ClockReading) -> Notice? {
        checkRequests()
        checkLeader(at: now)
        return notices.next(at: now.uptime)
    }

    /// The uptime in milliseconds at which time alone makes something possible; nil means never.
    package var nextWake: Int64? {
        [
            saveFailure?.retryAt, linkRetryAt, pushAt, pollAt, receiptAt, link.live?.lagEndsAt,
            leader?.lookAt, notices.wake,
        ].compactMap { $0 }.min()
    }
}
