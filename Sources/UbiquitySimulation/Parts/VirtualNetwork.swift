// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Requests and their answers: late, lost, doubled, out of order.
package final class VirtualNetwork {
    private unowned let world: any VirtualWorld

    private static let timeouts: ClosedRange<Int64> = 1_000...30_000

    package init(world: any VirtualWorld) { self.world = world }

    /// Of the answers that come, the first counts.
    private final class Exchange {
        var isDone = false
    }

    /// - Parameters:
    ///   - serve: What the server does with the request; it answers once, now or later.
    ///   - done: Called once.
    package func request<Answer>(
        on line: any VirtualLine,
        serve: @escaping (@escaping (Result<Answer, LinkFailure>) -> Void) -> Void,
        done: @escaping (Result<Answer, LinkFailure>) -> Void
    ) {
        let exchange = Exchange()
        let finish: (Result<Answer, LinkFailure>) -> Void = { result in
            guard !exchange.isDone else { return }
            exchange.isDone = true
            done(result)
        }
        guard line.isOnline else {
            return world.after(line.delay()) {
                finish(.failure(LinkFailure(.unreachable, "offline")))
            }
        }
        if line.strikes(.requestLost) { return timeOut(finish) }
        let arrive = { [self] in
            serve { [self] result in answer(result, on: line, finish) }
        }
        world.after(line.delay(), arrive)
        // A proxy between may send it again, also long after the answer.
        if line.strikes(.duplicate) {
            world.after(line.delay() + world.chance.int64(0...60_000), arrive)
        }
    }

    private func answer<Answer>(
        _ result: Result<Answer, LinkFailure>, on line: any VirtualLine,
        _ finish: @escaping (Result<Answer, LinkFailure>) -> Void
    ) {
        if line.strikes(.answerLost) { return timeOut(finish) }
        let late = line.strikes(.slowAnswer) ? world.chance.int64(0...20_000) : 0
        world.after(line.delay() + late) { [self] in
            guard line.isOnline else { return timeOut(finish) }
            finish(result)
        }
    }

    private func timeOut<Answer>(_ finish: @escaping (Result<Answer, LinkFailure>) -> Void) {
        world.after(world.chance.int64(Self.timeouts)) {
            finish(.failure(LinkFailure(.unreachable, "timed out")))
        }
    }
}

/// The way between one machine and the server, as it is at the moment.
package protocol VirtualLine: AnyObject {
    var isOnline: Bool { get }

    /// How long one way takes, in milliseconds; drawn anew each time.
    func delay() -> Int64

    /// Whether a fault strikes the request or answer that is being sent.
    func strikes(_ fault: Fault) -> Bool
}
