// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Requests and their answers: late, lost, duplicated, out of order, slow.
package final class VirtualNetwork {
    private unowned let world: any VirtualWorld
    /// The server's timeout for receiving a whole request, in milliseconds.
    private let requestMillisecondsMax: Int64

    private static let timeouts: ClosedRange<Int64> = 1_000...30_000

    package init(world: any VirtualWorld, requestMillisecondsMax: Int64 = 120_000) {
        self.world = world
        self.requestMillisecondsMax = requestMillisecondsMax
    }

    /// Only the first answer to arrive counts.
    private final class Exchange {
        var isDone = false
    }

    /// - Parameters:
    ///   - bytes: The size of the request.
    ///   - answerBytes: The size of an answer.
    ///   - serve: The server's handler of the request. It answers once, now or later.
    ///   - done: Called once.
    package func request<Answer>(
        on line: any VirtualLine, bytes: Int = 0,
        answerBytes: @escaping (Answer) -> Int = { _ in 0 },
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
            return world.after(line.delay(.there)) {
                finish(.failure(LinkFailure(.unreachable, "offline")))
            }
        }
        if line.strikes(.requestLost) { return timeOut(finish) }
        let arrive = { [self] in
            serve { [self] result in
                let bytes = (try? result.get()).map(answerBytes) ?? 0
                answer(result, bytes: bytes, on: line, finish)
            }
        }
        let giveUp = { finish(.failure(LinkFailure(.timedOut, "too slow"))) }
        let time = line.quality.milliseconds(for: bytes)
        guard time <= requestMillisecondsMax else {
            return world.after(requestMillisecondsMax, giveUp)
        }
        transfer(milliseconds: time + line.delay(.there), giveUp: giveUp, done: arrive)
        // A proxy may send it again, even long after the answer.
        if line.strikes(.duplicate) {
            world.after(time + line.delay(.there) + world.chance.int64(0...60_000), arrive)
        }
    }

    private func answer<Answer>(
        _ result: Result<Answer, LinkFailure>, bytes: Int, on line: any VirtualLine,
        _ finish: @escaping (Result<Answer, LinkFailure>) -> Void
    ) {
        if line.strikes(.answerLost) { return timeOut(finish) }
        let late = line.strikes(.slowAnswer) ? world.chance.int64(0...20_000) : 0
        world.after(late) { [self] in
            transfer(
                milliseconds: line.quality.milliseconds(for: bytes) + line.delay(.back),
                giveUp: { finish(.failure(LinkFailure(.timedOut, "too slow"))) },
                done: { [self] in
                    guard line.isOnline else { return timeOut(finish) }
                    finish(result)
                })
        }
    }

    /// Transfers bytes continuously. The client checks the progress every second.
    private func transfer(
        milliseconds: Int64, giveUp: @escaping () -> Void, done: @escaping () -> Void
    ) {
        var idleTimeout = IdleTimeout(now: world.now)
        var now = world.now
        while now < world.now + milliseconds, now < idleTimeout.end {
            now = min(now + 1_000, world.now + milliseconds)
            idleTimeout.moved(at: now)
        }
        world.at(now, now < world.now + milliseconds ? giveUp : done)
    }

    private func timeOut<Answer>(_ finish: @escaping (Result<Answer, LinkFailure>) -> Void) {
        world.after(world.chance.int64(Self.timeouts)) {
            finish(.failure(LinkFailure(.timedOut, "timed out")))
        }
    }
}

/// The connection between one machine and the server in its current state.
package protocol VirtualLine: AnyObject {
    /// The machine's number.
    var number: Int { get }

    var isOnline: Bool { get }

    /// The latency of one direction in milliseconds, drawn at random each time.
    func delay(_ direction: Direction) -> Int64

    var quality: LineQuality { get }

    /// Whether a fault strikes the request or answer that is being sent.
    func strikes(_ fault: Fault) -> Bool
}

extension Record {
    /// The approximate size on the wire.
    fileprivate var virtualBytes: Int {
        50 + key.string.utf8.count + (content.value?.quotaBytes ?? 0)
    }
}

extension Push {
    package var virtualBytes: Int {
        transactions.reduce(200) { $1.writes.reduce($0) { $0 + $1.virtualBytes } }
    }
}

extension ChangeSet {
    package var virtualBytes: Int { records.reduce(200) { $0 + $1.virtualBytes } }
}
