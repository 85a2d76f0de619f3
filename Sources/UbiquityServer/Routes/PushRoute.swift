// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore
internal import UbiquityWire

/// Receives pushes. A small push needs no thread but its connection's and the writer.
final class PushRoute: Sendable {
    private let commits: CommitQueue
    private let gate: Gate
    private let threads: BlockingThreads
    private let allowance: PushAllowance
    private let shares: AccountShares
    private let answers: AccountShares
    private let lastSeen: LastSeenBuffer
    private let bounds: MessageBounds

    /// - Parameters:
    ///   - shares: The budget for bodies.
    ///   - answers: The budget for answers, see ``StoreReader/shares``.
    init(
        commits: CommitQueue, gate: Gate, threads: BlockingThreads, allowance: PushAllowance,
        shares: AccountShares, answers: AccountShares, lastSeen: LastSeenBuffer,
        limits: StoreLimits
    ) {
        self.commits = commits
        self.gate = gate
        self.threads = threads
        self.allowance = allowance
        self.shares = shares
        self.answers = answers
        self.lastSeen = lastSeen
        bounds = MessageBounds(ofPushWithin: limits)
    }

    /// A value in so few bytes cannot nest deeply enough to need a thread with a deep stack, and is
    /// decoded in so little time that other connections can wait.
    private static let shallowBytesMax = 512

    /// The maximum of an account. A device makes one push at a time.
    static let placesMax = 64

    /// One push on its way.
    private final class Arrival {
        let exchange: Exchange
        let rights: DeviceRights
        let store: StoreReference
        let bodyFormat: WireFormat
        let answerFormat: WireFormat
        /// The permit for the body's memory, until the push is committed.
        let permit: AccountShares.Permit
        let answerPermit: AccountShares.Permit
        let bounds: MessageBounds

        init(
            _ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference,
            _ bounds: MessageBounds, permit: AccountShares.Permit,
            answerPermit: AccountShares.Permit
        ) throws {
            self.bounds = rights.generation > 0 ? bounds.sealed : bounds
            self.exchange = exchange
            self.rights = rights
            self.store = store
            self.permit = permit
            self.answerPermit = answerPermit
            bodyFormat = try exchange.bodyFormat
            answerFormat = try exchange.answerFormat
        }
    }

    @Sendable func commit(
        _ exchange: Exchange, _ rights: DeviceRights, _ store: StoreReference
    ) throws {
        try allowance.take(rights)
        let answerPermit = try answers.take(rights)
        guard !answerPermit.isFull else { throw Problem.answersInMemory }
        let arrival = try Arrival(
            exchange, rights, store, bounds, permit: try shares.take(rights),
            answerPermit: answerPermit)
        exchange.readBody(bytesMax: arrival.bounds.bytes, permit: arrival.permit) { [self] body in
            exchange.attempt { decode(try body.get().bytes, arrival) }
        }
    }

    private func decode(_ body: [UInt8], _ arrival: Arrival) {
        let author = arrival.rights.reference
        allowance.charge(bytes: body.count, arrival.rights)
        let (format, bounds) = (arrival.bodyFormat, arrival.bounds)
        onFittingThread(isShallow: body.count <= Self.shallowBytesMax, arrival) {
            [lastSeen] in
            guard format.hasAtMost(bounds.elements, in: body, WirePush.self) else {
                throw Problem(
                    .bodyTooLarge,
                    "The push may have at most \(bounds.elements) elements. Send less at once.",
                    at: .bodyTooLarge)
            }
            let message = try format.decode(WirePush.self, from: body)
            if message.deviceMilliseconds > 0 {
                lastSeen.measure(Int64(wireMilliseconds: message.deviceMilliseconds), of: author)
            }
            return try Push(message, author: author.id)
        } then: { [self] push in
            let counted = max(body.count, push.bytes)
            allowance.charge(bytes: counted - body.count, arrival.rights)
            guard counted <= bounds.bytes else {
                throw Problem(
                    .bodyTooLarge,
                    "The push's writes count \(counted) bytes, but may count at most "
                        + "\(bounds.bytes). Send less at once.", at: .bodyTooLarge)
            }
            checkAgain(push, bytes: counted, arrival)
        }
    }

    /// Receiving the body may have taken two minutes.
    private func checkAgain(_ push: Push, bytes: Int, _ arrival: Arrival) {
        arrival.exchange.findCaller(by: gate) { [self] caller in
            try gate.check(caller, .store(arrival.store.identifier))
            try commit(push, bytes: bytes, arrival)
        }
    }

    private func commit(_ push: Push, bytes: Int, _ arrival: Arrival) throws {
        let waiting = PendingPush(store: arrival.store, push: push, rights: arrival.rights)
        try commits.commit(
            waiting, bytes: bytes, on: arrival.exchange.loop,
            then: arrival.exchange.callback { [self] push in
                allowance.charge(bytes: push.searchedBytes, arrival.rights)
                if let passed = push.passed {
                    lastSeen.pass(passed, of: arrival.store, by: arrival.rights.reference)
                }
                answer(push.answer, arrival)
            })
    }

    private func answer(_ answer: PushAnswer, _ arrival: Arrival) {
        arrival.permit.end()
        let records = answer.superseding
        let format = arrival.answerFormat
        onFittingThread(isShallow: records.isEmpty, arrival) {
            try StoreReader.checkAnswer(of: records)
            return format.encode(WirePushAnswer(answer))
        } then: { bytes in
            arrival.answerPermit.note(bytes.count)
            arrival.exchange.answer(
                Answer([ByteBuffer(bytes: bytes)], arrival.answerPermit, format))
        }
    }

    private func onFittingThread<T: Sendable>(
        isShallow: Bool, _ arrival: Arrival, _ body: @escaping @Sendable () throws -> T,
        then: @escaping (T) throws -> Void
    ) {
        guard !isShallow else { return arrival.exchange.attempt { try then(try body()) } }
        threads.run(
            slicesFor: arrival.rights.account, body, then: arrival.exchange.callback(then))
    }
}
