// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import Ubiquity
internal import UbiquityCore

/// Several keys as one.
extension EndToEndTests.ContractTests {
    private static let keys = ["x", "y", "z"]

    /// Vector 20, with real devices; all interleavings that chance finds are among the tests of the
    /// engine.
    @Test func `two batches on the same keys from two devices, and all keys are of one of them`()
        async throws
    {
        let seed = UInt64.random(in: 0 ... .max)
        try await withTwoDevices(options: ServerProcess.manyPushes) { pair in
            let (a, b) = (pair.a, pair.b)
            let torn = Torn()
            let observers = [a, b].map { device in
                Observer(device.store) { _ in torn.look(device) }
            }
            for round in 0..<3 {
                if round == 1 { try await pair.server.stop() }
                async let writing: Void = Self.writeBatches(a, seed &+ UInt64(round), torn)
                try await Self.writeBatches(b, ~seed &+ UInt64(round), torn)
                try await writing
                if round == 1 { try await pair.server.start() }
                try await agreement(a, b) { $0.count == Self.keys.count }
            }
            #expect(torn.found.isEmpty, "seed \(seed)")
            let posted = observers.flatMap(\.all)
            #expect(!posted.isEmpty)
            #expect(posted.allSatisfy { $0.keys == Self.keys }, "seed \(seed)")
        }
    }

    @concurrent private static func writeBatches(
        _ device: Device, _ seed: UInt64, _ torn: Torn
    ) async throws {
        var random = RandomSource(seed: seed)
        for number in 0..<40 {
            let value = "\(device.home)-\(number)"
            try device.store.performBatch { batch in
                for key in keys { try batch.set(value, forKey: key) }
            }
            torn.look(device)
            try await Task.sleep(for: .microseconds(Int.random(in: 0...4_000, using: &random)))
            torn.look(device)
        }
    }

    /// The values found that are not all of one batch.
    ///
    /// Shared state: `texts`, by a mutex: observers and writers look.
    private final class Torn: Sendable {
        private let texts = Mutex<[[String: String]]>([])

        var found: [[String: String]] { texts.withLock(\.self) }

        func look(_ device: Device) {
            let now = device.texts
            guard Set(now.values).count > 1 || ![0, keys.count].contains(now.count) else { return }
            texts.withLock { $0.append(now) }
        }
    }
}
