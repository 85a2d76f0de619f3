// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension ScenarioWorld {
    /// Seals the accounts of a scenario in which they are sealed before there is a device.
    package func sealFromTheFirstDay() {
        guard scenario.isSealed, !scenario.sealsLater else { return }
        for account in 1...scenario.accounts {
            run.keyrings[account] = proposal(after: nil)
            server.sealWithKey(of: account)
        }
    }
}

/// People who seal their accounts, and give them new keys.
extension World {
    /// Has people run the command, at times on two devices at once, and hand the keys over.
    func planSealing() {
        guard scenario.sealsLater || scenario.generations > 1 else { return }
        let pause = chance.pick([2, 8, 30]) * scenario.workInterval
        after(chance.interval(mean: pause)) { [self] in
            guard !isPeaceful else { return }
            for _ in 0...(chance.perMille(300) ? 1 : 0) {
                beginSealing(on: chance.pick(devices), makesKeys: true)
            }
            if chance.coin() { chance.pick(devices).takeKeys() }
            planSealing()
        }
    }

    /// Finishes what was begun: every device has the keys, and seals what is not sealed yet.
    func finishSealing() {
        for device in devices {
            device.takeKeys()
            beginSealing(on: device, makesKeys: false)
        }
    }

    private func beginSealing(on device: SimulatedDevice, makesKeys: Bool) {
        guard scenario.isSealed, let account = device.account else { return }
        SealingCommand(device, account, world: self, makesKeys: makesKeys).go()
    }

    /// The server has a new mark: the other devices get its key one after the other.
    fileprivate func handOver(_ keyring: Keyring, of account: Int) {
        guard keyring.current > run.keyrings[account]?.current ?? 0 else { return }
        run.keyrings[account] = keyring
        for device in devices where device.account == account {
            let pause =
                isPeaceful
                ? chance.int64(0...1_000)
                : chance.coin() ? chance.interval(mean: 4 * scenario.workInterval) : absence()
            after(pause) { device.takeKeys() }
        }
    }
}

/// The command that seals an account, on one device: it carries out ``SealingStep`` after
/// ``SealingStep``, until it is interrupted.
private final class SealingCommand {
    private let device: SimulatedDevice
    private let account: Int
    private unowned let world: World
    /// Whether the person wants a key of the device that the account does not have yet.
    private let makesKeys: Bool
    private var attempts = 0
    /// The stores that are sound with the proposal.
    private var sound: Set<Int> = []

    init(_ device: SimulatedDevice, _ account: Int, world: World, makesKeys: Bool) {
        (self.device, self.account, self.world) = (device, account, world)
        self.makesKeys = makesKeys
    }

    /// Whether it goes on. People, and kills, end it anywhere.
    private var goesOn: Bool {
        device.isRunning && !device.isPaused && device.account == account
            && (world.isPeaceful || !world.chance.perMille(60))
    }

    func go() {
        attempts += 1
        guard goesOn, attempts < 200 else { return }
        world.network.request(on: device) { [self] reply in
            world.server.chosenNode.sealing(of: account, reply: reply)
        } done: { [self] (result: Result<VirtualNode.AccountState, LinkFailure>) in
            guard goesOn else { return }
            switch result {
            case .success(let server): take(server)
            case .failure: again()
            }
        }
    }

    private func again() {
        world.after(world.chance.int64(0...min(world.scenario.workInterval, 5_000))) { [self] in
            go()
        }
    }

    private func take(_ server: VirtualNode.AccountState) {
        let generation = server.mark?.generation ?? 0
        guard var session = device.state.sealing else { return }
        let step = session.mark(
            generation: generation, check: server.mark?.check,
            unsealed: server.unsealed.map { world.identifier(ofStore: $0) })
        device.take(session)
        switch step {
        case .propose: propose()
        case .done where generation < world.scenario.generations: propose()
        case .mark:
            let unseen = (0..<world.scenario.stores).first { !sound.contains($0) }
            if let unseen { check(unseen, of: generation) } else { mark(after: generation) }
        case .seal: if let store = server.unsealed.first { seal(store) }
        case .done, .getKey, .restored: break
        }
    }

    private func propose() {
        guard makesKeys, !world.isPeaceful else { return }
        guard var session = device.state.sealing else { return }
        session.proposal = world.proposal(after: session.keyring)
        device.take(session)
        sound = []
        again()
    }

    private func mark(after present: UInt32) {
        guard let keyring = device.state.proposal, let mark = AccountSealing(keyring) else {
            return
        }
        world.network.request(on: device) { [self] reply in
            world.server.chosenNode.seal(
                account, with: mark, proof: keyring.proof(of: present)
            ) { [self] result in
                if case .success(true) = result { world.handOver(keyring, of: account) }
                reply(result)
            }
        } done: { [self] (_: Result<Bool, LinkFailure>) in
            again()
        }
    }

    /// Looks at a store before the mark is sent, so that nothing is in the way afterwards.
    private func check(_ number: Int, of present: UInt32) {
        guard let proposal = device.state.proposal else { return again() }
        read(number, of: present, with: proposal) { [self] _ in
            sound.insert(number)
            again()
        }
    }

    private func seal(_ number: Int) {
        guard let keyring = device.state.keyring else { return }
        read(number, of: keyring.current, with: keyring) { [self] whole in
            let store = StoreReference(account: account, store: number)
            world.network.request(on: device) { [self] reply in
                world.server.chosenNode.replace(store, by: whole, reply: reply)
            } done: { [self] (_: Result<Void, LinkFailure>) in
                again()
            }
        }
    }

    /// Seals a store as it is, with what the device has agreed on. Whatever goes wrong, the store is read
    /// again, or is sealed by now.
    private func read(
        _ number: Int, of present: UInt32, with keyring: Keyring,
        then: @escaping (WholeStore) -> Void
    ) {
        let store = StoreReference(account: account, store: number)
        world.network.request(on: device, answerBytes: \.virtualBytes) { [self] reply in
            world.server.chosenNode.whole(store, generation: present, reply: reply)
        } done: { [self] (result: Result<ChangeSet, LinkFailure>) in
            guard goesOn, case .success(let found) = result, let session = device.state.sealing,
                let signedIn = device.state.signedIn,
                let sealed = try? session.store(
                    world.identifier(ofStore: number), found, agreed: agreed(on: number),
                    generation: keyring.current, by: DeviceID(signedIn.device) ?? .unassigned,
                    at: world.now, run: world.chance.number(), isRestored: false),
                sealed.unopened.isEmpty
            else { return again() }
            then(
                WholeStore(
                    cursor: found.cursor, generation: keyring.current, records: sealed.records,
                    proof: keyring.proof(of: keyring.current)))
        }
    }

    private func agreed(on number: Int) -> [Key: Record] {
        let disk = device.disk(number, folder: device.state.folder).content.saved
        guard disk.meta.account == "\(account)" else { return [:] }
        return disk.entries.compactMapValues(\.entry.confirmed)
    }
}
