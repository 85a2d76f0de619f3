// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Ubiquity

/// A full store: 1,024 keys, and 1 MiB of strings of 256 to 1,792 bytes.
enum SampleStore {
    static let identifier = "TEAM.example.benchmark"
    static let keys = (0..<1_024).map { "setting.\($0)" }

    static func value(_ index: Int) -> String {
        let bytes = [256, 768, 1_280, 1_792][index % 4]
        let start = "\(index) "
        return start + String(repeating: "x", count: bytes - start.utf8.count)
    }

    static func open(home: String) throws -> UbiquitousKeyValueStore {
        let configuration = UbiquityConfiguration(identifier: identifier, home: home)
        return try UbiquitousKeyValueStore(configuration: configuration)
    }

    static func fill(_ store: UbiquitousKeyValueStore) {
        for (index, key) in keys.enumerated() { store.set(value(index), forKey: key) }
    }

    static func isWhole(_ store: UbiquitousKeyValueStore) -> Bool {
        keys.enumerated().allSatisfy { store.string(forKey: $1) == value($0) }
    }
}

extension UbiquitousKeyValueStore {
    /// Waits for the exchange with the server on this thread. Not for a thread that tasks need.
    func exchange(seconds: Int) throws {
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            do { try await self.synchronizeNow() } catch { note("The exchange failed: \(error)") }
            done.signal()
        }
        guard done.wait(timeout: .now() + .seconds(seconds)) == .success else {
            throw Trouble("the exchange with the server took more than \(seconds) s")
        }
    }
}

/// Says something to whoever watches; figures alone go to the standard output.
private func note(_ sentence: String) {
    FileHandle.standardError.write(Data((sentence + "\n").utf8))
}
