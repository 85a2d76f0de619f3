// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Round trips, and requests outside the sync.
extension StoreDriver {
    func requestSync() async throws {
        try await wait { state in
            state.driver.engine.requestSync(at: shared.now())
        } begin: { _ in
            scheduleRun()
        }
    }

    /// Begins a request, and calls back with the answer.
    typealias Request<Answer> =
        @Sendable (
            any StoreLink, @escaping @Sendable (Result<Answer, LinkFailure>) -> Void
        ) -> Void

    /// Sends a request outside the sync.
    /// - Throws: ``UbiquityError`` and `CancellationError`.
    func ask<Answer: Sendable>(
        _ begin: @escaping Request<Answer>
    ) async throws -> Answer {
        let answer = Mutex<Result<Answer, LinkFailure>?>(nil)
        try await wait { state in
            state.newQuestion()
        } begin: { id in
            queue.enqueue { [self] in
                guard let account = signedIn,
                    let link = shell.makeLink(of: account, generation: read { $0.generation })
                else {
                    return finish(
                        id, throwing: UbiquityError(.notSignedIn, "this device is not signed in"))
                }
                begin(link) { [self] result in
                    answer.withLock { $0 = $0 ?? result }
                    finish(id, throwing: nil)
                }
            }
        }
        guard let result = answer.withLock(\.self) else { throw UbiquityError.closed }
        do { return try result.get() } catch { throw UbiquityError(error) }
    }

    /// Waits for something until ``finish(_:throwing:)``, cancellation, or the end of the queue.
    /// - Parameters:
    ///   - number: Registers it with the engine, and returns the number that it ends with.
    ///   - begin: Called with that number, outside the engine's lock.
    private func wait(
        for number: (inout SharedEngine.State) -> Int, begin: (Int) -> Void
    ) async throws {
        let request = Mutex<Int?>(nil)
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // In one step, or the engine could finish before the waiter is registered.
                let id = shared.state.withLock { state in
                    let id = number(&state)
                    state.waiters.append((id, continuation))
                    return id
                }
                request.withLock { $0 = id }
                begin(id)
                if !queue.isAwaited(until: { [self] in !isWaiting(id) }) {
                    finish(id, throwing: UbiquityError.closed)
                }
                if Task.isCancelled { finish(id, throwing: CancellationError()) }
            }
        } onCancel: {
            if let id = request.withLock(\.self) { finish(id, throwing: CancellationError()) }
        }
    }

    private func isWaiting(_ request: Int) -> Bool {
        shared.state.withLock { $0.waiters.contains { $0.request == request } }
    }

    func finish(_ id: Int, throwing error: (any Error)?) {
        let waiter = shared.state.withLock { $0.takeWaiter(id) }
        if let error { waiter?.resume(throwing: error) } else { waiter?.resume() }
    }

    func failWaiters() {
        for request in shared.state.withLock({ $0.waiters.map(\.request) }) {
            finish(request, throwing: UbiquityError.closed)
        }
    }
}

extension StoreDriver {
    /// Asks the server which devices have the store's changes, or those of one key.
    /// - Throws: ``UbiquityError``, `CancellationError`.
    func delivery(of key: Key?) async throws -> UbiquityDelivery {
        let waiting = waitingCount(of: key)
        let deliveries = try await ask { [self] link, answered in
            link.deliveries(of: key, saved: read(\.savedCursor), answered: answered)
        }
        return delivery(deliveries, of: key, waiting: waiting)
    }

    /// The deliveries from now on, each that differs from the one before. The newest is kept for a
    /// slow reader.
    func deliveries(changes: Broadcast<UbiquityChange>) -> AsyncStream<UbiquityDelivery> {
        notifyOwnWrites()
        return AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let last = Mutex<UbiquityDelivery?>(nil)
            let watch = DeliveryWatch(on: queue, seed: .random(in: 0 ... .max)) {
                [weak self] done in
                guard let self else { return continuation.finish() }
                askForDelivery { delivery in
                    if let delivery, last.withLock({ $0.replace(by: delivery) }) {
                        continuation.yield(delivery)
                    }
                    done()
                }
            }
            let remove = changes.add { change in
                guard change != nil else { return continuation.finish() }
                watch.hurry()
            }
            continuation.onTermination = { _ in
                remove()
                watch.end()
            }
            watch.start()
        }
    }

    /// Asks the server which devices have the store's changes.
    /// - Parameter answered: Called once, on any thread; with nil if there is no answer.
    private func askForDelivery(answered: @escaping @Sendable (UbiquityDelivery?) -> Void) {
        let waiting = waitingCount(of: nil)
        queue.enqueue { [self] in
            guard signedIn != nil, let link = shell.link else { return answered(nil) }
            link.deliveries(of: nil, saved: read(\.savedCursor)) { [self] result in
                answered((try? result.get()).map { delivery($0, of: nil, waiting: waiting) })
            }
        }
    }

    /// - Parameter waiting: The writes that waited before the server was asked. Some may have been sent,
    ///   or made, meanwhile.
    private func delivery(
        _ deliveries: [DeviceDelivery], of key: Key?, waiting: Int
    ) -> UbiquityDelivery {
        UbiquityDelivery(
            deliveries, own: signedIn.flatMap { DeviceID($0.device) },
            waiting: max(waiting, waitingCount(of: key)))
    }

    private func waitingCount(of key: Key?) -> Int {
        read { engine in engine.waitingRecords.count { key == nil || $0.whole == key } }
    }
}

extension UbiquityDelivery? {
    /// - Returns: Whether it is another one than before.
    fileprivate mutating func replace(by delivery: UbiquityDelivery) -> Bool {
        defer { self = delivery }
        return self != delivery
    }
}
