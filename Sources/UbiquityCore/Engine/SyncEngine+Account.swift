// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// A disk belongs to one account. Its content must never reach another.
    mutating func signIn(
        account: String, device: DeviceID, keyring: Keyring?, isSealed: Bool, at now: ClockReading
    ) {
        let isOwner = meta.account.exactString == ExactString(account)
        guard meta.account == nil || isOwner else {
            setLink(.unauthorized, error: "this store's file belongs to another account")
            return
        }
        if !isOwner {
            meta.account = account
            unsaved.meta = true
        }
        if isSealed || device != self.device { hasHeardSealed = false }
        self.device = device
        isSignedIn = true
        take(keyring, isSealed: isSealed)
        link.close()
    }

    /// The values stay, and new writes wait for the same account.
    mutating func signOut() {
        guard isSignedIn else { return }
        endAccount("this device was signed out")
        post(Notice(.accountChange, []))
    }

    mutating func leave() { endAccount("this device is now signed in to another account") }

    private mutating func endAccount(_ reason: String) {
        isSignedIn = false
        hasHeardSealed = false
        link.close()
        // A follower has the leader's status there, and keeps it for the next sign-in.
        if isLeading { setLink(.signedOut) }
        failRequests(LinkFailure(.unauthorized, reason))
    }

    /// Switches to another account's disk. Its values replace these, whatever their timestamps.
    /// Unsent writes stay parked on the old disk.
    ///
    /// Answers to requests for the old account are ignored. The process neither leads on the new
    /// disk nor is it signed in yet.
    /// - Precondition: ``isSaved``, unless the old disk is being wiped.
    package mutating func move(
        to disk: DiskChanges, discardsUnsaved: Bool = false, at now: ClockReading
    ) {
        precondition(isSaved || discardsUnsaved, "Unsaved writes would be lost with the account.")
        leave()
        var next = SyncEngine(disk: disk, settings: settings, seed: random.next(), at: now)
        next.counts = counts
        next.link.hangUp = link.hangUp
        next.finished = finished
        next.notices = notices
        next.notifiesOwnWrites = notifiesOwnWrites
        next.keepsRedoLog = keepsRedoLog
        next.adoptPolicies(of: self)
        let (old, new) = (values, next.values)
        let changed = Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }
        next.post(Notice(.accountChange, changed))
        self = next
    }
}
