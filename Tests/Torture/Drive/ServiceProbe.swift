// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Synchronization
import Ubiquity
import UbiquityCore

/// A device that does nothing but push, and so knows for how long nobody could.
///
/// Shared state, guarded by a mutex: when a push was acknowledged last, what has been broken since, the
/// longest time between two, and the number of the newest one; its own task counts, and others ask.
final class ServiceProbe: Sendable {
    private struct Known {
        var last = ContinuousClock.now
        /// The last fault since then.
        var cause: Tally.Event?
        /// The longest time between two acknowledgements, by the fault meanwhile.
        var longest: [Tally.Event?: Duration] = [:]
        var acknowledged: Int64 = 0
    }

    private let way: Proxy
    private let transport: HTTPTransport
    private let device: DeviceID
    private let known = Mutex(Known())

    /// The time after which it tries another node.
    private static let patience = Duration.seconds(2)
    private static let pause = Duration.milliseconds(20)
    private static let key = try! Key("probe")

    /// - Parameter way: To any of the nodes.
    init(by code: String, through way: Proxy) async throws {
        self.way = way
        let account = try await AccountClient.signIn(
            server: way.url, by: .code(code), deviceName: "probe")
        device = DeviceID(account.device) ?? .unassigned
        transport = HTTPTransport(
            server: way.url, store: try StoreIdentifier(TortureDevice.store),
            credential: account.credential, device: device)
    }

    /// The longest times without an acknowledged push, by what was broken meanwhile: the longest first.
    var longest: [(cause: Tally.Event?, time: Duration)] {
        known.withLock { $0.longest.map { ($0.key, $0.value) }.sorted { $0.time > $1.time } }
    }

    func noteFault(_ event: Tally.Event) { known.withLock { $0.cause = event } }

    /// Pushes until its task is cancelled.
    func run() async {
        known.withLock { $0.last = .now }
        var number: Int64 = 0
        while !Task.isCancelled {
            number += 1
            if await push(number) {
                acknowledged(number)
            } else {
                // To another node.
                await way.cut(all: true)
            }
            try? await Task.sleep(for: Self.pause)
        }
    }

    private func acknowledged(_ number: Int64) {
        known.withLock { known in
            let time = ContinuousClock.now - known.last
            known.longest[known.cause] = max(known.longest[known.cause] ?? .zero, time)
            (known.last, known.cause, known.acknowledged) = (.now, nil, number)
        }
    }

    /// - Returns: Whether it was acknowledged in time.
    private func push(_ number: Int64) async -> Bool {
        let time = Int64(Date().timeIntervalSince1970 * 1_000)
        let record = Record(
            key: Self.key, content: .value(.integer(number)),
            stamp: Stamp(HybridTimestamp(milliseconds: time, counter: 0), device))
        guard let transaction = try? Transaction([record]) else { return false }
        return await withCheckedContinuation { continuation in
            let answer = OneAnswer(continuation)
            transport.push(Push([transaction]), within: IntakeLimits(nil)) { result in
                answer.give((try? result.get()) != nil)
            }
            Task {
                try? await Task.sleep(for: Self.patience)
                answer.give(false)
            }
        }
    }

    /// - Returns: A sentence that says why the newest acknowledged push is not in the store; nil: it is.
    func missing() async -> String? {
        // First, because it goes on pushing.
        let acknowledged = known.withLock(\.acknowledged)
        let changes: ChangeSet
        do { changes = try await transport.pull(since: nil) } catch {
            return "the probe cannot read its store: \(error)"
        }
        let value = changes.records.first { $0.key == Self.key }?.content.value
        guard case .integer(let number) = value else {
            return acknowledged == 0 ? nil : "the probe's store has no number"
        }
        return acknowledged <= number
            ? nil : "the probe's push \(acknowledged) was acknowledged, but its store has \(number)"
    }
}

/// The first answer counts.
private final class OneAnswer: Sendable {
    private let continuation: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) {
        self.continuation = Mutex(continuation)
    }

    func give(_ answer: Bool) {
        continuation.withLock { continuation in
            continuation?.resume(returning: answer)
            continuation = nil
        }
    }
}
