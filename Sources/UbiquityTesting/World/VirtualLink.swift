// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

/// The link of one store to the server through the virtual network.
///
/// Shared state, for `@unchecked Sendable`: all of it, guarded by the world's turn, which every
/// call holds.
final class VirtualLink: StoreLink, VirtualListener, @unchecked Sendable {
    private struct Listener {
        var stream: VirtualStream
        var receive: @Sendable (StreamMessage) -> Void
        var ended: @Sendable (LinkFailure?) -> Void
    }

    private let store: StoreReference
    private let device: DeviceID
    /// The number of the account's key that the process has; 0 for none.
    private let generation: UInt32
    private let machine: TestMachine
    private var listeners: [Int: Listener] = [:]
    private var lastNumber = 0
    private var hasEnded = false

    init(
        to store: StoreReference, as device: DeviceID, generation: UInt32, of machine: TestMachine
    ) {
        (self.store, self.generation) = (store, generation)
        self.device = device
        self.machine = machine
    }

    private var world: TestWorld { machine.world }

    var line: any VirtualLine { machine.device }

    var openStreams: [VirtualStream] {
        listeners.values.map(\.stream).sorted { $0.id < $1.id }
    }

    /// The process has ended. Nothing is reported any more.
    func end() {
        hasEnded = true
        for stream in openStreams { stream.hangUp() }
        listeners = [:]
    }

    // MARK: - Streams

    func listen(
        since cursor: Cursor?, isSaved: Bool, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void,
        ended: @escaping @Sendable (LinkFailure?) -> Void
    ) -> @Sendable () -> Void {
        if hasEnded { return {} }
        lastNumber += 1
        let number = lastNumber
        let stream = VirtualStream(
            number: number, listener: self, store: store, device: device, world: world,
            generation: generation)
        listeners[number] = Listener(stream: stream, receive: receive, ended: ended)
        world.network.request(on: line) {
            [world] (reply: (Result<Void, LinkFailure>) -> Void) in
            world.server.open(stream, since: cursor, isSaved: isSaved)
            reply(.success(()))
        } done: { result in
            if case .failure(let failure) = result { stream.breakOff(failure) }
        }
        return { [weak self] in self?.hangUp(number) }
    }

    private func hangUp(_ number: Int) { listeners.removeValue(forKey: number)?.stream.hangUp() }

    func received(_ message: StreamMessage, on stream: Int) { listeners[stream]?.receive(message) }

    func streamEnded(_ stream: Int, _ failure: LinkFailure?) {
        listeners.removeValue(forKey: stream)?.ended(failure)
    }

    // MARK: - Requests

    func push(
        _ push: Push, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<PushAnswer, LinkFailure>) -> Void
    ) {
        request(bytes: push.virtualBytes, answered: answered) { [world, store, device] reply in
            world.server.chosenNode.push(push, to: store, by: device, reply: reply)
        }
    }

    func deliveries(
        of key: Key?, saved: Cursor?,
        answered: @escaping @Sendable (Result<[DeviceDelivery], LinkFailure>) -> Void
    ) {
        request(answered: answered) { [world, store, device] reply in
            world.server.chosenNode.deliveries(
                of: key, in: store, to: world.machines(of: store.account), saved: saved,
                by: device, reply: reply)
        }
    }

    func pull(
        since cursor: Cursor?, isSaved: Bool, withConfig: Bool, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<ChangeSet, LinkFailure>) -> Void
    ) {
        request(answerBytes: \.virtualBytes, answered: answered) {
            [world, store, device, generation] reply in
            world.server.chosenNode.pull(
                store, since: cursor, isSaved: isSaved, withConfig: withConfig, by: device,
                generation: generation, reply: reply)
        }
    }

    /// Once the process has ended, nothing is sent or answered any more.
    private func request<Answer>(
        bytes: Int = 0, answerBytes: @escaping (Answer) -> Int = { _ in 0 },
        answered: @escaping @Sendable (Result<Answer, LinkFailure>) -> Void,
        serve: @escaping (@escaping (Result<Answer, LinkFailure>) -> Void) -> Void
    ) {
        if hasEnded { return }
        world.network.request(
            on: line, bytes: bytes, answerBytes: answerBytes, serve: serve
        ) { [weak self] result in
            if self?.hasEnded == false { answered(result) }
        }
    }

    // MARK: - History

    func history(
        of key: Key?, from place: String?, max: Int,
        answered: @escaping @Sendable (Result<HistoryPage, LinkFailure>) -> Void
    ) {
        ask(answered) { store, rule in store.page(of: key, from: place, max: max, by: rule) }
    }

    func snapshot(
        at time: HistoryRule.Time,
        answered: @escaping @Sendable (Result<StoreSnapshot, LinkFailure>) -> Void
    ) {
        ask(answered) { store, rule throws(LinkFailure) in
            do { return try store.snapshot(at: time, by: rule) } catch {
                throw LinkFailure(.refused, "the server's history does not go back that far")
            }
        }
    }

    func deviceNames(
        answered: @escaping @Sendable (Result<[DeviceID: String], LinkFailure>) -> Void
    ) {
        ask(answered) { [world, store] _, _ in
            let signedIn = world.machines.map(\.device).filter { $0.account == store.account }
                .compactMap(\.state.signedIn)
            let names = signedIn.compactMap { account in
                DeviceID(account.device).map { ($0, account.deviceName) }
            }
            return Dictionary(names) { first, _ in first }
        }
    }

    private func ask<Answer>(
        _ answered: @escaping @Sendable (Result<Answer, LinkFailure>) -> Void,
        _ question: @escaping (VirtualStore, HistoryRule) throws(LinkFailure) -> Answer
    ) {
        request(answered: answered) { [world, store] reply in
            world.server.chosenNode.ask(store, question, reply: reply)
        }
    }
}
