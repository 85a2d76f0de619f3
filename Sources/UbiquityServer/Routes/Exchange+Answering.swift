// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

extension Exchange {
    /// Answers with the problem that the error is for the client.
    func refuse(_ error: any Error) {
        if let handleError { handleError(error) } else { refuse(Problem(error)) }
    }

    /// Refuses the request if the body throws.
    func attempt(_ body: () throws -> Void) {
        do { try body() } catch { refuse(error) }
    }

    /// Finds the caller, at once if the connection's last request had the same credential not long
    /// ago and nothing was revoked since.
    func findCaller(by gate: Gate, then: @escaping (Caller) throws -> Void) {
        guard !gate.isInFolder else { return attempt { try then(.operator) } }
        let field = request.headers.first(name: "authorization")
        let revocations = gate.authenticator.revocations
        let now = gate.clock.uptime()
        if let known = connection.client, known.authorization == field,
            known.revocations == revocations, now < known.until
        {
            return attempt { try then(known.caller) }
        }
        gate.authenticator.caller(
            request.headers.bearer,
            then: callback { [connection] caller in
                // The end of an operator's credential is no revocation.
                connection.client =
                    caller == .operator
                    ? nil
                    : HTTPConnection.Client(
                        authorization: field, caller: caller, revocations: revocations,
                        until: now + gate.authenticator.connectionMilliseconds)
                try then(caller)
            })
    }

    /// Continues on this connection's loop, at once if that is where the result arrives. An error
    /// refuses the request.
    func callback<T: Sendable>(
        _ then: @escaping (T) throws -> Void
    ) -> @Sendable (Result<T, any Error>) -> Void {
        let loop = loop
        let bound = NIOLoopBound((exchange: self, then: then), eventLoop: loop)
        return { result in
            let go: @Sendable () -> Void = {
                let (exchange, then) = bound.value
                exchange.attempt { try then(try result.get()) }
            }
            if loop.inEventLoop { go() } else { loop.execute(go) }
        }
    }

    /// Answers in a task. An error refuses the request.
    func answer(_ body: @escaping @Sendable () async throws -> Answer) {
        Task { [self] in
            do {
                let answer = try await body()
                if hasBody, let stream = answer.stream {
                    await send(answer, stream)
                } else {
                    loop.execute { self.answer(answer) }
                }
            } catch { loop.execute { self.refuse(error) } }
        }
    }

    /// Sends an answer as it is made: one that fits into a piece in one go, and others as fast as the
    /// other side reads. An error ends the connection, which tells the client that it is incomplete.
    private func send(_ head: Answer, _ stream: Answer.Stream) async {
        var (waiting, hasBegun) = (ByteBuffer(), false)
        func flush() async throws {
            let (piece, isFirst) = (waiting, !hasBegun)
            (waiting, hasBegun) = (ByteBuffer(), true)
            try await loop.flatSubmit { [self] in
                if isFirst { _ = begin(head.status, head.headers) }
                return connection.write(piece)
            }.get()
        }
        do {
            try await stream { piece in
                waiting.writeImmutableBuffer(piece)
                if waiting.readableBytes > Answer.pieceBytes { try await flush() }
            }
            if hasBegun, waiting.readableBytes > 0 { try await flush() }
        } catch {
            return loop.execute { self.connection.abort() }
        }
        let (rest, isWhole) = (waiting, !hasBegun)
        loop.execute { [self] in
            guard isWhole else { return connection.endAnswer() }
            answer(Answer(head.status, headers: head.headers, body: rest))
        }
    }
}
