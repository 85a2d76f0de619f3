// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import UbiquityCore
internal import UbiquityWire

/// Taking pushes.
struct PushRoute: Sendable {
    let commits: CommitQueue
    let threads: BlockingThreads
    let pushes: RateLimiter<DeviceName>
    let edge: Edge
    let settings: ServerSettings

    /// A value in so few bytes cannot nest deeply enough to need a thread with a deep stack.
    private static let shallowBytesMax = 512

    @Sendable func commit(
        _ request: Request, _ context: ServerContext, _ rights: DeviceRights, _ store: StoreKey
    ) async throws -> Response {
        do { try pushes.take(rights.name) } catch { throw error.at(.pushesPerDevice) }
        let format = try request.answerFormat
        let bodyFormat = try request.bodyFormat
        let (push, bytes) = try await read(request, bodyFormat, author: rights.name.id)
        let waiting = WaitingPush(store: store, push: push)
        return try await answer(try await commits.commit(waiting, bytes: bytes), format)
    }

    private func read(
        _ request: Request, _ format: WireFormat, author: DeviceID
    ) async throws -> (Push, bytes: Int) {
        let body = try await request.readBody(
            bytesMax: settings.limits.pushBytesMax, budget: edge.bodies)
        defer { edge.bodies.give(body.readableBytes) }
        let bytes = body.bytes
        let push = try await onFittingThread(isShallow: bytes.count <= Self.shallowBytesMax) {
            try Push(format.decode(WirePush.self, from: bytes), author: author)
        }
        return (push, bytes.count)
    }

    private func answer(_ outcome: PushOutcome, _ format: WireFormat) async throws -> Response {
        switch outcome {
        case .clockAhead(let error): throw error
        case .tooManyStores: throw Problem.tooManyStores
        case .full: throw StorageError.full
        // Its devices are gone with it.
        case .noSuchAccount: throw AccessRefusal.credentialInvalid
        case .committed(let commit):
            let answer = PushAnswer(
                cursor: commit.position.cursor, serverMilliseconds: commit.serverMilliseconds,
                results: commit.results)
            let bytes = try await onFittingThread(isShallow: !answer.hasRecords) {
                format.encode(WirePushAnswer(answer))
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
    fileprivate var hasRecords: Bool {
        results.contains { result in
            guard case .committed(let writes) = result else { return false }
            return writes.contains { if case .superseded = $0 { true } else { false } }
        }
    }
}
