// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import NIOCore
internal import UbiquityCore
internal import UbiquityWire

/// Receives pushes.
struct PushRoute: Sendable {
    let commits: CommitQueue
    let gate: Gate
    let threads: BlockingThreads
    let allowance: PushAllowance
    let shares: AccountShares
    /// The budget for answers, see ``StoreReader/shares``.
    let answers: AccountShares
    let settings: ServerSettings

    /// A value in so few bytes cannot nest deeply enough to need a thread with a deep stack.
    private static let shallowBytesMax = 512

    /// The maximum of an account. A device makes one push at a time.
    static let placesMax = 64

    @Sendable func commit(
        _ request: Request, _ context: ServerContext, _ rights: DeviceRights,
        _ store: StoreReference
    ) async throws -> Response {
        try allowance.take(rights.reference)
        let answerPermit = try answers.take(rights)
        guard !answerPermit.isFull else { throw Problem.answersInMemory }
        let permit = try shares.take(rights)
        defer { withExtendedLifetime(permit) {} }
        let format = try request.answerFormat
        let bodyFormat = try request.bodyFormat
        let (push, bytes) = try await read(request, bodyFormat, permit, author: rights.reference)
        // Receiving the body may have taken two minutes.
        try await gate.checkAgain(request.bearer, .pushToStore(store.identifier))
        let waiting = PendingPush(store: store, push: push, rights: rights)
        let commit = try await commits.commit(waiting, bytes: bytes)
        return try await answer(
            commit.answer, format, rights.account, answerPermit, on: context.channel.eventLoop)
    }

    /// - Returns: The push, and its cost in bytes: that of its body, or of its writes.
    private func read(
        _ request: Request, _ format: WireFormat, _ permit: AccountShares.Permit,
        author: DeviceReference
    ) async throws -> (Push, bytes: Int) {
        let bounds = MessageBounds(ofPushWithin: settings.limits)
        let body = try await request.readBody(bytesMax: bounds.bytes, permit: permit)
        let bytes = body.bytes
        allowance.charge(bytes: bytes.count, author)
        let push = try await onFittingThread(
            isShallow: bytes.count <= Self.shallowBytesMax, author.account
        ) {
            guard format.hasAtMost(bounds.elements, in: bytes, .push) else {
                throw Problem(
                    .bodyTooLarge,
                    "The push may have at most \(bounds.elements) elements. Send less at once.",
                    at: .bodyTooLarge)
            }
            return try Push(format.decode(WirePush.self, from: bytes), author: author.id)
        }
        let counted = max(bytes.count, push.bytes)
        allowance.charge(bytes: counted - bytes.count, author)
        guard counted <= bounds.bytes else {
            throw Problem(
                .bodyTooLarge,
                "The push's writes count \(counted) bytes, but may count at most \(bounds.bytes). "
                    + "Send less at once.", at: .bodyTooLarge)
        }
        return (push, counted)
    }

    private func answer(
        _ answer: PushAnswer, _ format: WireFormat, _ account: AccountID,
        _ permit: AccountShares.Permit, on loop: any EventLoop
    ) async throws -> Response {
        let records = answer.superseding
        let bytes = try await onFittingThread(isShallow: records.isEmpty, account) {
            try StoreReader.checkAnswer(of: records)
            return format.encode(WirePushAnswer(answer))
        }
        permit.note(bytes.count)
        return HeldAnswer([ByteBuffer(bytes: bytes)], permit).response(format, on: loop)
    }

    private func onFittingThread<T: Sendable>(
        isShallow: Bool, _ account: AccountID, _ body: @escaping @Sendable () throws -> T
    ) async throws -> T {
        isShallow ? try body() : try await threads.run(for: account, body)
    }
}
