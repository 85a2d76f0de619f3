// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// A store follows the device's sign-in: each account has a file of its own.
extension StoreBacking {
    /// Adopts the sign-in as it is, and as it will be.
    func followDevice(_ device: any StoreDevice) {
        let stop = device.watch { [weak self] state in
            guard let self else { return }
            queue.enqueue { self.follow(state) }
        } failure: { [weak self] error in
            self?.report(UbiquityError(.storage, "the sign-in could not be read: \(error)"))
        }
        shell.withLock { $0.stopWatching = stop }
        // Before the app's next line: a round trip it asks for must not find the device signed out.
        if let state = try? device.current() { queue.perform { follow(state) } }
    }

    /// Is told of other processes' writes to the file, and leads when it is this one's turn.
    func use(_ file: any StoreFile) throws {
        try file.watch { [weak self] in self?.driver.lookAtDisk() }
        // What was written between the first look and the watch.
        driver.lookAtDisk()
        file.whenLeading { [weak self] in self?.driver.lead(on: file.storage) }
    }

    private func follow(_ state: DeviceState) {
        let (folder, isTurning, isClosed) = shell.withLock { shell in
            if shell.wanted != nil { shell.wanted = state }
            return (shell.folder, shell.wanted != nil, shell.isClosed)
        }
        if isTurning || isClosed { return }
        if state.folder == folder {
            signIn(state.signedIn)
        } else {
            turn(to: state)
        }
    }

    /// Goes on with the file that another account has here, or with an empty one.
    private func turn(to state: DeviceState) {
        guard let device else { return }
        let old = shell.withLock { shell in
            shell.wanted = state
            return (file: shell.file, folder: shell.folder)
        }
        let file = open(in: state.folder, of: device)
        driver.move(
            to: file?.storage ?? MemoryStorage(), content: file?.content ?? DiskChanges(),
            // No account has the folder that is left: it is being wiped.
            discardsUnsaved: !state.folders.values.contains(old.folder)
        ) { [weak self] in
            old.file?.letGo()
            guard let self else { return }
            queue.enqueue { self.turned(to: file, folder: state.folder) }
        }
    }

    private func turned(to file: (any StoreFile)?, folder: String) {
        let wanted = shell.withLock { shell in
            defer { shell.wanted = nil }
            (shell.file, shell.folder, shell.signedIn) = (file, folder, nil)
            return shell.wanted
        }
        do { if let file { try use(file) } } catch { report(UbiquityError(.storage, "\(error)")) }
        if let wanted { follow(wanted) }
    }

    /// - Returns: Nil if it cannot be opened. The values of the account that was left must not be
    ///   shown any longer, so the store goes on in memory.
    private func open(in folder: String, of device: any StoreDevice) -> (any StoreFile)? {
        do { return try device.openFile(fileName, folder: folder) } catch {
            report(
                UbiquityError(
                    .storage,
                    "the file of the account that signed in cannot be opened, and its values are "
                        + "kept in memory only: \(error)"))
            return nil
        }
    }

    /// What a status says beyond the engine's word.
    func status(of engine: EngineStatus) -> UbiquityStatus {
        UbiquityStatus(
            engine, account: shell.withLock { $0.signedIn?.accountName },
            isConfigured: identifier != nil)
    }

    /// Nil while the device is signed out.
    var accountID: String? { shell.withLock { $0.signedIn?.account } }

    private func signIn(_ account: SignedInAccount?) {
        let before = shell.withLock { shell in
            defer { shell.signedIn = account }
            return shell.signedIn
        }
        guard before != account else { return }
        guard let account else { return driver.tell(.signedOut) }
        guard let identifier, let device, let name = DeviceID(account.device) else { return }
        driver.signIn(
            account: account.account, device: name,
            link: device.link(to: identifier, of: account, as: name))
    }
}
