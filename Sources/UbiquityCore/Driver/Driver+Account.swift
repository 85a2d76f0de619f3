// SPDX-License-Identifier: Apache-2.0

/// The store follows the device's sign-in: each account has a file of its own.
extension Driver {
    mutating func follow(_ state: DeviceState, at now: ClockReading) {
        device = state
        guard state.folder == folder else {
            guard !isLeaving else { return }
            isLeaving = true
            return engine.handle(.leaving, at: now)
        }
        if isLeaving {
            // Back before anything was left.
            (isLeaving, signedIn) = (false, nil)
            if state.signedIn == nil { engine.post(Notice(.accountChange, [])) }
        }
        signIn(state.signedIn, at: now)
    }

    private mutating func signIn(_ account: SignedInAccount?, at now: ClockReading) {
        guard account != signedIn else { return }
        signedIn = account
        guard isSynced, let account, let name = DeviceID(account.device) else {
            unconnected = nil
            return engine.handle(.signedOut, at: now)
        }
        unconnected = (account, name)
        engine.handle(.signedIn(account: account.account, device: name), at: now)
    }

    /// Turns to the other account's file as soon as all is saved in this one, where it stays parked.
    mutating func nextTurn(at now: ClockReading) -> Step? {
        guard let device else { return nil }
        if opened?.folder != (isLeaving ? device.folder : nil), let unused = letGoOpened() {
            return unused
        }
        // No account has the folder that is left: it is being wiped.
        let discardsUnsaved = !device.folders.values.contains(folder)
        guard isLeaving, engine.isSaved || discardsUnsaved else { return nil }
        guard let next = opened, let content = next.content else {
            filesOpened += 1
            opened = OpenedFile(number: filesOpened, folder: device.folder)
            return .open(folder: device.folder)
        }
        engine.move(to: content, discardsUnsaved: discardsUnsaved, at: now)
        (file, folder, opened) = (next.number, next.folder, nil)
        (isLeaving, isNextLeader, signedIn) = (false, false, nil)
        // What was written there since it was opened.
        reading = Attempt(isWanted: true)
        signIn(device.signedIn, at: now)
        return .use(file: file)
    }

    mutating func letGoOpened() -> Step? {
        guard opened != nil else { return nil }
        opened = nil
        return .letGo
    }
}
