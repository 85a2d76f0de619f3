// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

/// Requests to the server outside the sync, within the timeout.
extension OpenStore {
    private func asked<Answer: Sendable>(
        _ question: @escaping @Sendable (UbiquitousKeyValueStore) async throws -> Answer
    ) async throws -> Answer {
        guard account != nil else { throw Failure.notSignedIn }
        return try await withTimeout(seconds: sync.timeout) { [store] in
            try await question(store)
        }
    }

    /// When something was, by the server's clock: this device's may be wrong.
    /// - Parameter text: See ``PastTime``.
    func milliseconds(of text: String) async throws -> Int64 {
        guard let account else { throw Failure.notSignedIn }
        let config = try await withTimeout(seconds: sync.timeout) {
            try await AccountClient.config(of: account)
        }
        let now = Date(milliseconds: config.serverMilliseconds)
        return try PastTime(now: now).milliseconds(of: text)
    }

    func versions(of key: Key, newest max: Int) async throws -> [KeyVersion] {
        try await asked { try await $0.versions(of: key, newest: max) }
    }

    /// The newest versions of all keys, latest arrival first, preceded by the writes that wait on
    /// this device.
    func versions(newest max: Int) async throws -> [KeyVersion] {
        try await asked { store in
            let records = try await store.recordVersions(of: nil, newest: max)
            let oldest = records.last?.came?.revision ?? 0
            var versions: [KeyVersion] = []
            for (key, own) in Dictionary(grouping: records, by: \.record.key.whole) {
                // A part's value is nothing that a person has seen: that of the key takes all parts.
                let all =
                    own.contains(where: \.record.key.isPart)
                    ? try await store.recordVersions(of: key, newest: max) : own
                versions += KeyHistory(of: key, from: all).versions(newest: max)
                    .filter { $0.came?.revision ?? 0 >= oldest }
            }
            versions.sort { a, b in
                let (first, second) = (a.came?.revision ?? 0, b.came?.revision ?? 0)
                return first != second ? first > second : a.key < b.key
            }
            let known = Set(versions.map(\.stamp))
            let waiting = try store.engineStatus.pendingKeys.sorted()
                .flatMap { try store.localVersions(of: $0) }
                .filter { $0.outcome == .waiting && !known.contains($0.stamp) }
            return Array((waiting + versions).prefix(max))
        }
    }

    /// For each key that the store has, its newest version and the value before that, if known.
    func newestVersions() async throws -> [NewestVersion] {
        try await asked { store in
            let max = HistoryReading.versionsMax
            let records = try await store.recordVersions(of: nil, newest: max)
            let all = Dictionary(grouping: records, by: \.record.key.whole)
            return try store.values.keys.sorted().compactMap { key in
                NewestVersion(
                    of: key, from: all[key] ?? [], isWhole: records.count < max,
                    local: try store.localVersions(of: key))
            }
        }
    }

    func snapshot(at time: HistoryRule.Time) async throws -> StoreSnapshot {
        try await asked { try await $0.snapshot(at: time) }
    }

    func devices() async throws -> AccountDevices { try await asked { await $0.devices() } }
}
