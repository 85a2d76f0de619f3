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
        let step = SealingStep.next(
            keyring: device.state.keyring, proposal: device.state.proposal,
            generation: generation, check: server.mark?.check,
            wasSealed: device.state.signedIn?.isSealed ?? false,
            unsealed: server.unsealed.map { world.identifier(ofStore: $0) })
        switch step {
        case .propose: propose()
        case .done where generation < world.scenario.generations: propose()
        case .mark: mark(after: generation)
        case .adopt:
            device.adoptProposal()
            again()
        case .drop:
            device.propose(nil)
            again()
        case .seal: if let store = server.unsealed.first { seal(store) }
        case .done, .getKey, .restored: break
        }
    }

    private func propose() {
        guard makesKeys, !world.isPeaceful else { return }
        device.propose(world.proposal(after: device.state.keyring))
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

    /// Whatever goes wrong, the store is read again, or is sealed by now.
    private func seal(_ number: Int) {
        let store = StoreReference(account: account, store: number)
        guard let keyring = device.state.keyring,
            let sealer = keyring.sealer(of: world.identifier(ofStore: number))
        else { return }
        world.network.request(on: device, answerBytes: \.virtualBytes) { [self] reply in
            world.server.chosenNode.whole(store, generation: keyring.current, reply: reply)
        } done: { [self] (result: Result<ChangeSet, LinkFailure>) in
            guard goesOn, case .success(let found) = result,
                let sealed = try? sealer.sealWhole(
                    found.records, latest: world.now + Sealer.aheadMax, run: world.chance.number()),
                sealed.unopened.isEmpty
            else { return again() }
            let whole = WholeStore(
                cursor: found.cursor, generation: keyring.current, records: sealed.records,
                proof: keyring.proof(of: keyring.current))
            world.network.request(on: device) { [self] reply in
                world.server.chosenNode.replace(store, by: whole, reply: reply)
            } done: { [self] (_: Result<Void, LinkFailure>) in
                again()
            }
        }
    }
}
