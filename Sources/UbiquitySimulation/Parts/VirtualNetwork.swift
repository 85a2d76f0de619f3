// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Requests and their answers: late, lost, doubled, out of order, slow.
package final class VirtualNetwork {
    private unowned let world: any VirtualWorld
    /// The server waits no longer for a request to be whole, in milliseconds.
    private let requestMillisecondsMax: Int64

    private static let timeouts: ClosedRange<Int64> = 1_000...30_000

    package init(world: any VirtualWorld, requestMillisecondsMax: Int64 = 120_000) {
        self.world = world
        self.requestMillisecondsMax = requestMillisecondsMax
    }

    /// Of the answers that come, the first counts.
    private final class Exchange {
        var isDone = false
    }

    /// - Parameters:
    ///   - bytes: How long the request is.
    ///   - answerBytes: How long an answer is.
    ///   - serve: What the server does with the request; it answers once, now or later.
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
        // A proxy between may send it again, also long after the answer.
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

    /// Bytes move all the time, and the client sees each second how many.
    private func transfer(
        milliseconds: Int64, giveUp: @escaping () -> Void, done: @escaping () -> Void
    ) {
        var patience = TransferPatience(now: world.now)
        var now = world.now
        while now < world.now + milliseconds, now < patience.end {
            now = min(now + 1_000, world.now + milliseconds)
            patience.moved(at: now)
        }
        world.at(now, now < world.now + milliseconds ? giveUp : done)
    }

    private func timeOut<Answer>(_ finish: @escaping (Result<Answer, LinkFailure>) -> Void) {
        world.after(world.chance.int64(Self.timeouts)) {
            finish(.failure(LinkFailure(.timedOut, "timed out")))
        }
    }
}

/// The way between one machine and the server, as it is at the moment.
package protocol VirtualLine: AnyObject {
    /// The machine's.
    var number: Int { get }

    var isOnline: Bool { get }

    /// How long one way takes, in milliseconds; drawn anew each time.
    func delay(_ direction: Direction) -> Int64

    var quality: LineQuality { get }

    /// Whether a fault strikes the request or answer that is being sent.
    func strikes(_ fault: Fault) -> Bool
}

/// From a device to the server, or back.
package enum Direction: Sendable { case there, back }

/// What a line is like for as long as it is there.
package struct LineQuality: Hashable, Sendable {
    /// A proxy keeps back what an answer brings until the answer has ended: a stream brings nothing.
    package var isBuffering = false
    /// Nil: any.
    package var bytesPerSecond: Int?

    package init(isBuffering: Bool = false, bytesPerSecond: Int? = nil) {
        self.isBuffering = isBuffering
        self.bytesPerSecond = bytesPerSecond
    }

    /// How long so many bytes take.
    func milliseconds(for bytes: Int) -> Int64 {
        bytesPerSecond.map { Int64(bytes) * 1_000 / Int64($0) } ?? 0
    }
}

extension Record {
    /// About what it takes on the wire.
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
