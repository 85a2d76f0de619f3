// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Requests and their answers: late, lost, doubled, out of order.
final class VirtualNetwork {
    private unowned let world: World

    /// Of a thousand, how many requests suffer from a fault that the run has.
    private static let oftenPerMille = 60
    private static let timeouts: ClosedRange<Int64> = 1_000...30_000

    init(world: World) { self.world = world }

    /// One way, in milliseconds.
    func delay() -> Int64 {
        world.isPeaceful
            ? world.chance.int64(0...20)
            : world.chance.int64(0...world.scenario.delayMax)
    }

    private func strikes(_ fault: Fault) -> Bool {
        guard !world.isPeaceful, world.scenario.faults.contains(fault),
            world.chance.perMille(Self.oftenPerMille)
        else { return false }
        world.journal.count(fault)
        return true
    }

    /// Of the answers that come, the first counts.
    private final class Exchange {
        var isDone = false
    }

    /// - Parameters:
    ///   - serve: What the server does with the request; it answers once, now or later.
    ///   - done: Called once.
    func request<Answer>(
        from device: VirtualDevice,
        serve: @escaping (@escaping (Result<Answer, LinkFailure>) -> Void) -> Void,
        done: @escaping (Result<Answer, LinkFailure>) -> Void
    ) {
        let exchange = Exchange()
        let finish: (Result<Answer, LinkFailure>) -> Void = { result in
            guard !exchange.isDone else { return }
            exchange.isDone = true
            done(result)
        }
        guard device.isOnline else {
            return world.after(delay()) {
                finish(.failure(LinkFailure(.unreachable, "offline")))
            }
        }
        if strikes(.requestLost) { return timeOut(finish) }
        let arrive = { [self] in
            serve { [self] result in answer(result, to: device, finish) }
        }
        world.after(delay(), arrive)
        // A proxy between may send it again, also long after the answer.
        if strikes(.duplicate) { world.after(delay() + world.chance.int64(0...60_000), arrive) }
    }

    private func answer<Answer>(
        _ result: Result<Answer, LinkFailure>, to device: VirtualDevice,
        _ finish: @escaping (Result<Answer, LinkFailure>) -> Void
    ) {
        if strikes(.answerLost) { return timeOut(finish) }
        let late = strikes(.slowAnswer) ? world.chance.int64(0...20_000) : 0
        world.after(delay() + late) { [self] in
            guard device.isOnline else { return timeOut(finish) }
            finish(result)
        }
    }

    private func timeOut<Answer>(_ finish: @escaping (Result<Answer, LinkFailure>) -> Void) {
        world.after(world.chance.int64(Self.timeouts)) {
            finish(.failure(LinkFailure(.unreachable, "timed out")))
        }
    }
}
