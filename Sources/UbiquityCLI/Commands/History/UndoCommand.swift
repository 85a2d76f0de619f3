// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

struct UndoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "undo",
        abstract: "Restore a key's previous value.",
        usage: """
            ubiquity undo KEY
            ubiquity undo KEY --to 77ab0e21
            ubiquity undo KEY --to "yesterday 18:00"
            """,
        discussion: """
            An ordinary change, which goes to all devices and can be undone too: a second undo \
            brings back what the first one took away. --to goes further back. Under a conflict \
            policy, the difference is written: a counter goes back to what it was, and what other \
            devices count meanwhile stays.

            Status 1: there is no earlier value, or it is not known any more.

            JSON: {"key", "before", "after", "sent", "notSentBecause"}.
            """)

    @Argument(help: "The key.", completion: Completions.keys)
    var key: String

    @Option(
        "A version of `ubiquity history`, or a time such as \(PastTime.examples).", "version",
        discussion: "Default: the last version with another value.")
    var to: String?

    @Flag(help: "Show what would change, without changing anything.")
    var dryRun = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup var time: TimeoutOption
    @OptionGroup var json: ValueJSONOption

    private static let versionsMax = 1_000

    func run() async throws {
        let key = try Key(key)
        let policy = SyncPolicy(timeout: time.seconds(30))
        let (change, outcome) = try await OpenStore.with(store, policy, ifMissing: .refuse) {
            open in
            try await open.exchange()
            let value = try await value(of: key, open)
            var change = ValueChange(key: key, before: open.store.value(key.string), after: value)
            if dryRun || change.before == value {
                return (change, WriteOutcome(unsent: dryRun ? .dryRun : nil))
            }
            let outcome = try await open.revert([key: value.map(Content.value) ?? .deleted])
            // Another device may have counted meanwhile.
            change.after = open.store.value(key.string)
            return (change, outcome)
        }
        try report(change, outcome)
    }

    private func report(_ change: ValueChange, _ outcome: WriteOutcome) throws {
        let isForPeople = try outcome.report(
            json,
            [
                "key": .string(key), "before": change.before.map(JSON.value) ?? .null,
                "after": change.after.map(JSON.value) ?? .null,
            ])
        guard isForPeople else { return }
        if change.before == change.after {
            return Output.note("The key \"\(key)\" has that value already.")
        }
        Output.print(ValueChange.lines([change]))
        if to == nil, !dryRun {
            Output.note(
                """
                Another undo brings this back. To go further back, give a version of `ubiquity \
                history \(change.key)`: --to VERSION.
                """)
        }
    }

    private func value(of key: Key, _ open: OpenStore) async throws -> PropertyListValue? {
        guard let to else { return try await lastValue(of: key, open) }
        let versions = try await open.versions(of: key, newest: Self.versionsMax)
        let named = versions.filter { $0.name.hasPrefix(to.lowercased()) }
        if to.count >= 4, let version = named.first {
            guard Set(named.map(\.value)).count == 1 else {
                throw Failure(.usage, "several versions begin with \"\(to)\"; give all of it")
            }
            if version.isGap { throw notKnown(key) }
            return version.value
        }
        guard PastTime().date(of: to) != nil else {
            throw Failure(
                .usage,
                "\"\(to)\" is neither a version of the key in `ubiquity history` nor a time such as "
                    + PastTime.examples)
        }
        return try await value(
            of: key, at: .milliseconds(open.milliseconds(of: to)), open)
    }

    private func lastValue(of key: Key, _ open: OpenStore) async throws -> PropertyListValue? {
        let versions = try await open.versions(of: key, newest: Self.versionsMax)
        switch versions.earlierValue(than: open.store.value(key.string)) {
        case .known(let value): return value
        case .atRevision(let revision):
            return try await value(of: key, at: .revision(revision), open)
        case nil: throw Failure(.no, "no earlier value of \"\(key)\" is known")
        }
    }

    private func notKnown(_ key: Key) -> Failure {
        Failure(.no, "what \"\(key)\" was then is not known any more")
    }

    private func value(
        of key: Key, at time: HistoryRule.Time, _ open: OpenStore
    ) async throws -> PropertyListValue? {
        let past: StoreSnapshot
        do { past = try await open.snapshot(at: time) } catch let error as UbiquityError
            where error.code == .refused
        {
            throw Failure(.no, error.description)
        }
        if past.forgottenKeys.contains(key) {
            throw notKnown(key)
        }
        return open.store.values(of: past)[key]
    }
}
