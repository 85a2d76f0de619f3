// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import UbiquityCore
internal import UbiquityWire

/// Receives pushes.
struct PushRoute: Sendable {
    let commits: CommitQueue
    let gate: Gate
    let threads: BlockingThreads
    let allowance: PushAllowance
    let permits: PushPermits
    let edge: Edge
    let settings: ServerSettings

    /// A value in so few bytes cannot nest deeply enough to need a thread with a deep stack.
    private static let shallowBytesMax = 512

    @Sendable func commit(
        _ request: Request, _ context: ServerContext, _ rights: DeviceRights, _ store: StoreKey
    ) async throws -> Response {
        try allowance.take(rights.name)
        guard !edge.answers.isFull else { throw Problem.answersInMemory }
        let permit = try permits.take(rights.account)
        defer { withExtendedLifetime(permit) {} }
        let format = try request.answerFormat
        let bodyFormat = try request.bodyFormat
        let (push, bytes) = try await read(request, bodyFormat, permit, author: rights.name)
        // Receiving the body may have taken two minutes.
        try await gate.checkAgain(request.bearer, .pushToStore(store.identifier))
        let waiting = WaitingPush(store: store, push: push, by: rights)
        return try await answer(try await commits.commit(waiting, bytes: bytes), format)
    }

    /// - Returns: The push, and its cost in bytes: that of its body, or of its writes.
    private func read(
        _ request: Request, _ format: WireFormat, _ permit: PushPermits.Permit, author: DeviceName
    ) async throws -> (Push, bytes: Int) {
        let bytesMax = settings.limits.pushBytesMax
        let body = try await request.readBody(bytesMax: bytesMax, budget: edge.bodies) {
            permit.take($0)
        }
        defer { edge.bodies.give(body.readableBytes) }
        let bytes = body.bytes
        allowance.charge(bytes: bytes.count, author)
        let push = try await onFittingThread(isShallow: bytes.count <= Self.shallowBytesMax) {
            try Push(format.decode(WirePush.self, from: bytes), author: author.id)
        }
        let counted = max(bytes.count, push.bytes)
        allowance.charge(bytes: counted - bytes.count, author)
        guard counted <= bytesMax else { throw Problem.pushTooLarge(counted, max: bytesMax) }
        return (push, counted)
    }

    private func answer(_ outcome: PushOutcome, _ format: WireFormat) async throws -> Response {
        switch outcome {
        case .clockAhead(let error): throw error
        case .tooLarge: throw Problem.answerRepeats
        case .unreadable: throw Problem.unreadable
        case .tooManyStores: throw Problem.tooManyStores
        case .full: throw StorageError.full
        case .notAllowed(let refusal): throw refusal
        // Its devices are gone too.
        case .noSuchAccount: throw AccessRefusal.credentialInvalid
        case .committed(let commit):
            let answer = PushAnswer(
                cursor: commit.position.cursor, serverMilliseconds: commit.serverMilliseconds,
                results: commit.results)
            let records = answer.records
            let bytes = try await onFittingThread(isShallow: records.isEmpty) {
                try StoreReader.checkAnswer(of: records)
                return format.encode(WirePushAnswer(answer))
            }
            return Response(bytes: bytes, format)
        }
    }

    private func onFittingThread<T: Sendable>(
        isShallow: Bool, _ body: @escaping @Sendable () throws -> T
    ) async throws -> T {
        isShallow ? try body() : try await threads.run(body)
    }
}

extension PushAnswer {
    fileprivate var records: [Record] {
        results.flatMap { result -> [Record] in
            guard case .committed(let writes) = result else { return [] }
            return writes.compactMap { write in
                if case .superseded(let record) = write { record } else { nil }
            }
        }
    }
}
