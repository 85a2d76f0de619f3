// SPDX-License-Identifier: Apache-2.0

/// Follows the device's sign-in: each account has a store file of its own.
extension Driver {
    /// - Parameter isFresh: Whether the state was read after the file in use: a file never knows of a sealed
    ///   account before the state does.
    mutating func follow(_ state: DeviceState, isFresh: Bool, at now: ClockReading) {
        device = state
        guard ExactString(state.folder) == ExactString(folder) else {
            guard !isLeaving else { return }
            isLeaving = true
            return engine.handle(.leaving, at: now)
        }
        if isLeaving {
            // The device returned before the folder was left.
            (isLeaving, signedIn) = (false, nil)
            if state.signedIn == nil { engine.post(Notice(.accountChange, [])) }
        }
        signIn(state.signedIn, isFresh: isFresh, at: now)
    }

    /// The account that the engine has heard to be sealed, which the device's state does not know.
    var unnotedAccount: ExactString? {
        guard engine.hasHeardSealed, !isLeaving else { return nil }
        return signedIn.map { ExactString($0.account) }
    }

    private mutating func signIn(
        _ account: SignedInAccount?, isFresh: Bool, at now: ClockReading
    ) {
        // A store without its file is not connected: nothing of it is on disk yet, so nothing can
        // be sent.
        let keyring = account == nil ? nil : device?.keyring
        let isSealed = account != nil && (device?.isSealed ?? false || !isFresh && engine.isSealed)
        guard isOpen,
            account != signedIn || keyring != self.keyring || isSealed != self.isSealed
        else { return }
        (signedIn, self.keyring, self.isSealed) = (account, keyring, isSealed)
        if isSealed, !(device?.isSealed ?? false) { self.account.want() }
        guard engine.settings.store != nil, let account, let id = DeviceID(account.device) else {
            unconnected = nil
            return engine.handle(.signedOut, at: now)
        }
        unconnected = (account, id)
        engine.handle(
            .signedIn(
                account: account.account, device: id, keyring: keyring, isSealed: isSealed),
            at: now)
    }

    /// Switches to the other account's file once everything in this one is saved, where unsent
    /// writes stay parked.
    ///
    /// If the other file cannot be opened, the app still sees nothing of the account that it left,
    /// and its writes stay unsaved until the file opens.
    mutating func nextAccountStep(at now: ClockReading) -> Step? {
        guard let device else { return nil }
        // A folder that no account has any more is being wiped.
        let discardsUnsaved = !device.isOwned(folder)
        let leaves = isLeaving && (engine.isSaved || discardsUnsaved)
        let target = (leaves ? device.folder : isOpen ? nil : folder).map { ExactString($0) }
        if opened?.folder != target, let unused = releaseOpened() { return unused }
        if openingFolder != target {
            (openingFolder, opening) = (target, Attempt(isWanted: true))
        }
        guard let target else { return nil }
        if let content = opened?.content {
            return leaves
                ? switchAccount(to: content, discardsUnsaved, at: now) : reopen(content, at: now)
        }
        if opening.begin(at: now) {
            filesOpened += 1
            opened = OpenedFile(number: filesOpened, folder: target)
            return .open(folder: target.string)
        }
        return leaves ? switchAccount(to: nil, discardsUnsaved, at: now) : nil
    }

    /// - Parameter content: Nil if the file cannot be opened.
    private mutating func switchAccount(
        to content: DiskChanges?, _ discardsUnsaved: Bool, at now: ClockReading
    ) -> Step? {
        guard let device else { return nil }
        engine.move(
            to: content ?? DiskChanges(version: -1), discardsUnsaved: discardsUnsaved, at: now)
        (isLeaving, signedIn, folder) = (false, nil, device.folder)
        let step = use(isOpen: content != nil)
        signIn(device.signedIn, isFresh: false, at: now)
        return step
    }

    /// Continues with the file of the visible account, which can be opened after all. If the device
    /// has switched to another account meanwhile, the file is only saved, and then left.
    private mutating func reopen(_ content: DiskChanges, at now: ClockReading) -> Step {
        engine.handle(.diskChanged(content), at: now)
        engine.handle(.hurry, at: now)
        let step = use(isOpen: true)
        if !isLeaving { signIn(device?.signedIn, isFresh: false, at: now) }
        return step
    }

    private mutating func use(isOpen: Bool) -> Step {
        (file, opened, self.isOpen) = (filesOpened, nil, isOpen)
        (hasLease, leadsAt) = (false, nil)
        openingFolder = isOpen ? nil : ExactString(folder)
        if isOpen { opening = Attempt(isWanted: true) }
        // Reads what was written there since it was opened.
        reading = Attempt(isWanted: true)
        return .use(file: file)
    }

    mutating func releaseOpened() -> Step? {
        guard let unused = opened else { return nil }
        opened = nil
        return unused.content == nil ? nil : .release
    }
}
