// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The I/O of one store: its file, its connection and the device's sign-in.
///
/// Confined to the driver's queue. `@unchecked Sendable` because of closures that are called
/// elsewhere, which use nothing here but `emit`.
final class StoreShell: @unchecked Sendable {
    private let identity: StoreIdentity
    private let device: (any StoreDevice)?
    /// The file in use.
    private(set) var storage: any LocalStorage
    /// The file opened last, if it is not in use yet.
    private var opened: (any LocalStorage)?
    /// The link of the last sign-in, also after a sign-out.
    private(set) var link: (any StoreLink)?
    /// The newest stream and a closure that ends it.
    private var stream: (number: Int, end: @Sendable () -> Void)?
    private var stopWatching: (@Sendable () -> Void)?
    private var emit: @Sendable (Driver.Event) -> Void = { _ in }

    init(_ identity: StoreIdentity, on device: (any StoreDevice)?, folder: String?) throws {
        (self.identity, self.device) = (identity, device)
        storage =
            try folder.flatMap { try device?.openFile(identity.fileName, folder: $0) }
            ?? MemoryStorage()
    }

    /// The process that leads the store, if known. Can be called on any thread.
    func leader(in folder: String) -> String? {
        device?.leader(of: identity.fileName, folder: folder)
    }

    /// Makes a link. Nil for a store without an identifier.
    func makeLink(of account: SignedInAccount, generation: UInt32) -> (any StoreLink)? {
        identity.identifier.flatMap { device?.link(to: $0, of: account, generation: generation) }
    }

    /// Begins to watch the file and the sign-in.
    /// - Parameter emit: Called on any thread.
    func start(emitting emit: @escaping @Sendable (Driver.Event) -> Void) throws {
        self.emit = emit
        try use(storage, number: 0)
        stopWatching = device?.watch { emit(.accountSignalled) }
    }

    /// Carries out one step.
    /// - Parameter intake: The limits on the data accepted from the server, for the steps that ask it.
    /// - Returns: The resulting event, if it is known at once.
    func perform(
        _ step: Driver.Step, within intake: @autoclosure () -> IntakeLimits
    ) -> Driver.Event? {
        switch step {
        case .effect(let effect): return perform(effect, within: intake())
        case .read(let version): return read(after: version)
        case .readAccount: return account { try $0.current() }
        case .noteSealed(let identifier): return account { try $0.noteSealed(identifier) }
        case .connect(let account, _, let generation):
            link = makeLink(of: account, generation: generation)
        case .open(let folder): return open(folder)
        case .release:
            opened?.close()
            opened = nil
        case .use(let number): return turn(to: number)
        case .close: close()
        case .decide, .synchronized, .report: break
        }
        return nil
    }

    // MARK: - Files

    /// Replaces a file that cannot be opened. Nothing can be saved to it.
    private static var unopened: any LocalStorage {
        MemoryStorage(
            failing: LocalStorageError(.notWritable, path: "of the store", cause: "not opened"))
    }

    private func use(_ file: any LocalStorage, number: Int) throws {
        try file.watch { [emit] in emit(.fileSignalled) }
        file.whenLeading { [emit] in emit(.leading(file: number, true)) }
    }

    private func open(_ folder: String) -> Driver.Event {
        do {
            opened = try device?.openFile(identity.fileName, folder: folder)
            return .opened(try opened?.load() ?? DiskChanges())
        } catch {
            opened = nil
            return .unopened("\(error)")
        }
    }

    private func turn(to number: Int) -> Driver.Event? {
        storage.close()
        storage = opened ?? Self.unopened
        (opened, link) = (nil, nil)
        do {
            try use(storage, number: number)
            return nil
        } catch { return .unwatched("\(error)") }
    }

    private func read(after version: Int64) -> Driver.Event {
        do { return .fileRead(try storage.changes(after: version)) } catch {
            return .fileUnreadable("\(error)")
        }
    }

    private func save(_ batch: SaveBatch) -> SyncEngine.Event {
        do {
            switch try storage.save(batch) {
            case .saved(let version): return .saved(version: version)
            case .conflict(let changes): return .saveConflicted(changes)
            }
        } catch { return .saveFailed("\(error)") }
    }

    private func account(
        _ state: (any StoreDevice) throws -> DeviceState
    ) -> Driver.Event? {
        do { return try device.map { .accountRead(try state($0)) } } catch {
            return .accountUnreadable("\(error)")
        }
    }

    private func close() {
        stopWatching?()
        stream?.end()
        opened?.close()
        storage.close()
    }

    // MARK: - The connection

    private func perform(
        _ effect: SyncEngine.Effect, within intake: @autoclosure () -> IntakeLimits
    ) -> Driver.Event? {
        switch effect {
        case .save(let batch): return .engine(save(batch))
        case .listen(let stream, let cursor, let isSaved):
            listen(stream, since: cursor, isSaved, within: intake())
        case .hangUp(let stream): hangUp(stream)
        case .push(let number, let push): self.push(number, push, within: intake())
        case .pull(let number, let cursor, let isSaved, let withConfig):
            pull(number, since: cursor, isSaved, withConfig, within: intake())
        case .notify, .finishSync: break
        }
        return nil
    }

    private func listen(
        _ stream: Int, since cursor: Cursor?, _ isSaved: Bool, within intake: IntakeLimits
    ) {
        let end = link?.listen(since: cursor, isSaved: isSaved, within: intake) {
            [emit] message in
            emit(.engine(.streamReceived(stream, message)))
        } ended: { [emit] failure in
            emit(.engine(.streamEnded(stream, failure)))
        }
        // There is only one at a time: the engine has closed the previous stream, or it has ended.
        self.stream = end.map { (stream, $0) }
    }

    private func hangUp(_ number: Int) {
        guard let stream, stream.number == number else { return }
        stream.end()
        self.stream = nil
    }

    private func push(_ number: Int, _ push: Push, within intake: IntakeLimits) {
        link?.push(push, within: intake) { [emit] result in
            switch result {
            case .success(let answer): emit(.engine(.pushAnswered(number, answer)))
            case .failure(let failure): emit(.engine(.pushFailed(number, failure)))
            }
        }
    }

    private func pull(
        _ number: Int, since cursor: Cursor?, _ isSaved: Bool, _ withConfig: Bool,
        within intake: IntakeLimits
    ) {
        link?.pull(since: cursor, isSaved: isSaved, withConfig: withConfig, within: intake) {
            [emit] result in
            switch result {
            case .success(let changes): emit(.engine(.pulled(number, changes)))
            case .failure(let failure): emit(.engine(.pullFailed(number, failure)))
            }
        }
    }
}
