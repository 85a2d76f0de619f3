// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

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
