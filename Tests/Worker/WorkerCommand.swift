// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import TortureLanguage
import Ubiquity
import UbiquityCore

/// One line of the input: a word, and what it needs.
enum WorkerCommand {
    case set(key: String, text: String)
    /// Writes, lets the store go and makes another at once.
    case reopen(key: String, text: String)
    case remove(key: String)
    case get(key: String)
    case values
    case synchronize
    case sync
    case status

    init(_ line: String) throws {
        let words = line.split(separator: " ", maxSplits: 2).map(String.init)
        switch (words.first, words.count) {
        case ("set", 3): self = .set(key: words[1], text: words[2])
        case ("reopen", 3): self = .reopen(key: words[1], text: words[2])
        case ("remove", 2): self = .remove(key: words[1])
        case ("get", 2): self = .get(key: words[1])
        case ("values", 1): self = .values
        case ("synchronize", 1): self = .synchronize
        case ("sync", 1): self = .sync
        case ("status", 1): self = .status
        default: throw ValidationError("no command: \(line)")
        }
    }

    func run(on store: UbiquitousKeyValueStore) async throws {
        switch self {
        case .set(let key, let text): write(text, key, to: store)
        case .remove(let key): write(nil, key, to: store)
        case .get(let key): MessageOutput.print(WorkerMessage.value(store.string(forKey: key)))
        case .values: MessageOutput.print(WorkerMessage.values(store.texts))
        case .synchronize: MessageOutput.print(WorkerMessage.synchronized(store.synchronize()))
        case .sync: MessageOutput.print(WorkerMessage.synced(failure: await failure(of: store)))
        case .status: MessageOutput.print(WorkerMessage.status(store.workerStatus))
        // The worker's own.
        case .reopen: break
        }
    }

    private func write(_ text: String?, _ key: String, to store: UbiquitousKeyValueStore) {
        let start = MonotonicTime.now
        store.set(text, forKey: key)
        MessageOutput.print(WorkerMessage.wrote(at: start))
    }

    private func failure(of store: UbiquitousKeyValueStore) async -> String? {
        do {
            try await store.synchronizeNow()
            return nil
        } catch { return "\(error)" }
    }
}

extension UbiquitousKeyValueStore {
    /// Of one moment.
    var texts: [String: String] {
        dictionaryRepresentation.compactMapValues { $0 as? String }
    }

    fileprivate var workerStatus: WorkerMessage.Status {
        let status = engineStatus
        return WorkerMessage.Status(
            isLeading: status.isLeading, isConnected: status.link.state == .connected)
    }
}
