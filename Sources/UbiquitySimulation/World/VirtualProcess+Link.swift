// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// The connection, through the virtual network.
extension VirtualProcess: VirtualListener {
    var line: any VirtualLine { device }

    var openStreams: [VirtualStream] { streams.values.sorted { $0.id < $1.id } }

    func cutStream() {
        for stream in openStreams { world.chance.coin() ? stream.cut() : stream.goSilent() }
    }

    func received(_ message: StreamMessage, on stream: Int) {
        whenRunning { [self] in
            var message = message
            if case .changes(let changes) = message { message = .changes(tampered(changes)) }
            // Before the engine handles it, because discarded writes must be reported.
            if case .changes(let changes) = message {
                noteDiscards(changes, by: .streamReceived(stream, message))
            }
            handle(.engine(.streamReceived(stream, message)))
            switch message {
            // Changes that were rejected were not received.
            case .changes(let changes):
                if engine.meta.cursor == changes.cursor { noteReceived(changes.cursor) }
            case .ready(let cursor, _): noteReceived(cursor)
            case .resync, .progress: break
            }
            schedule()
        }
    }

    func streamEnded(_ stream: Int, _ failure: LinkFailure?) {
        whenRunning { [self] in
            let store = streams.removeValue(forKey: stream)?.store
            noteSealed(failure, of: store)
            receive(.engine(.streamEnded(stream, failure)))
        }
    }

    /// Takes note of what the process is told of the account, unless it has another one by now.
    private func noteSealed(_ failure: LinkFailure?, of store: StoreReference?) {
        guard case .sealed(let generation)? = failure?.kind, generation > 0, let store,
            store == address?.store
        else { return }
        knowsSealed.insert(store.account)
    }

    /// Reports what the process says is on its disk, and what is.
    private func noteTells(_ cursor: Cursor?) {
        guard let cursor, let position = Position(cursor), let address else { return }
        world.journal.note(
            .tells(
                process: number, address.store, position, values: disk.confirmedValues,
                own: disk.waitingKeys.union(engine.setAsideRecords)))
    }

    func listen(_ number: Int, since cursor: Cursor?, _ isSaved: Bool) {
        guard address != nil else { return }
        world.journal.note(.opensStream(process: self.number))
        if isSaved { noteTells(cursor) }
        open(number, since: cursor, isSaved)
    }

    /// Ends the connections of streams that are up to date, without the engine's knowledge: they go on
    /// by others, as those of a process with several stores do, see ``SharedStream``.
    /// - Returns: Opens the others.
    func leaveConnections() -> () -> Void {
        let left = streams.sorted { $0.key < $1.key }.filter(\.value.isReady)
        for (_, stream) in left { stream.hangUp() }
        return { [self] in
            for (number, stream) in left where streams[number] === stream {
                open(number, since: stream.cursor, false, isReady: true)
            }
        }
    }

    private func open(
        _ number: Int, since cursor: Cursor?, _ isSaved: Bool, isReady: Bool = false
    ) {
        guard let address else { return }
        let stream = VirtualStream(
            number: number, listener: self, store: address.store, device: address.device,
            world: world, cursor: cursor, isReady: isReady, generation: generation)
        streams[number] = stream
        world.network.request(on: device) {
            [world] (reply: (Result<Void, LinkFailure>) -> Void) in
            world.server.open(stream, since: cursor, isSaved: isSaved)
            reply(.success(()))
        } done: { result in
            if case .failure(let failure) = result { stream.breakOff(failure) }
        }
    }

    func push(_ number: Int, _ push: Push) {
        guard let address else { return }
        let opener = world.opener(of: address.store)
        let opened = opener.opened(push)
        // A process without the key must not know that there is one.
        let knows =
            disk.content.saved.meta.generation > 0 || engine.generation > 0
            || knowsSealed.contains(address.store.account)
        if world.hostile != nil {
            let latest = world.now + 2 * HybridTimestamp.aheadMax
            let ahead = push.transactions.flatMap(\.writes).filter {
                $0.stamp.timestamp.milliseconds > latest
            }
            if !ahead.isEmpty {
                world.journal.note(.betrays(process: self.number, Set(ahead.map(\.key))))
            }
        }
        let unsaved = opened.transactions.flatMap(\.writes).filter { !disk.everHad($0) }
        world.journal.note(
            .pushes(
                process: self.number, opened, unsaved: Set(unsaved.map(\.key)),
                readable: knows ? opener.readable(push) : []))
        noteTells(push.saved)
        let request = begin(.pushFailed(number, Self.reset))
        world.network.request(on: device, bytes: push.virtualBytes) { [world] reply in
            // What is too large waits for ever: a device must not make it.
            guard push.bytes <= world.server.limits.pushBytesMax else {
                return reply(.failure(LinkFailure(.tooLarge, "Send less at once.")))
            }
            world.server.chosenNode.push(
                push, to: address.store, by: address.device, reply: reply)
        } done: { [self] (result: Result<PushAnswer, LinkFailure>) in
            switch result {
            case .success(let answer):
                answered(
                    request, .pushAnswered(number, answer), refused: answer.refusedKeys(of: push))
            case .failure(let failure):
                whenRunning { [self] in noteSealed(failure, of: address.store) }
                answered(request, .pushFailed(number, failure))
            }
        }
    }

    func pull(_ number: Int, since cursor: Cursor?, _ isSaved: Bool, _ withConfig: Bool) {
        guard let address else { return }
        world.journal.note(.pulls(process: self.number))
        let generation = generation
        if isSaved { noteTells(cursor) }
        let request = begin(.pullFailed(number, Self.reset))
        world.network.request(on: device, answerBytes: \.virtualBytes) {
            [world] (reply: @escaping (Result<ChangeSet, LinkFailure>) -> Void) in
            world.server.chosenNode.pull(
                address.store, since: cursor, isSaved: isSaved, withConfig: withConfig,
                by: address.device, generation: generation, reply: reply)
        } done: { [self] result in
            switch result {
            case .success(let changes): pulled(request, number, changes)
            case .failure(let failure):
                whenRunning { [self] in noteSealed(failure, of: address.store) }
                answered(request, .pullFailed(number, failure))
            }
        }
    }

    private func tampered(_ changes: ChangeSet) -> ChangeSet {
        guard let hostile = world.hostile, let address else { return changes }
        return hostile.tamper(changes, of: address.store, at: world.now) { [self] in
            engine.agreedStamp(of: $0)
        }
    }

    private func pulled(_ request: Int, _ number: Int, _ changes: ChangeSet) {
        whenRunning { [self] in
            let changes = tampered(changes)
            noteDiscards(changes, by: .pulled(number, changes))
            answered(request, .pulled(number, changes))
            noteReceived(changes.cursor)
        }
    }

    static let reset = LinkFailure(.unreachable, "reset")

    /// - Parameter failure: The event if there is no answer.
    /// - Returns: The request's number here.
    func begin(_ failure: SyncEngine.Event) -> Int {
        let request = (requests.keys.max() ?? 0) + 1
        requests[request] = failure
        return request
    }

    func answered(_ request: Int, _ event: SyncEngine.Event, refused: Set<Key> = []) {
        whenRunning { [self] in
            requests[request] = nil
            handle(.engine(event), refused: refused)
            schedule()
        }
    }
}

extension PushAnswer {
    /// The keys of the transactions that the server refused.
    fileprivate func refusedKeys(of push: Push) -> Set<Key> {
        let refused = zip(push.transactions, results).filter { _, result in
            if case .refused = result { true } else { false }
        }
        return Set(refused.flatMap { $0.0.writes.map(\.key) })
    }
}
