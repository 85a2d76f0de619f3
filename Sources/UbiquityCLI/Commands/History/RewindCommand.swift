// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

struct RewindCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rewind",
        abstract: "Restore the whole store, or some keys, to how they were at a time.",
        usage: """
            ubiquity rewind --to yesterday --dry-run
            ubiquity rewind --to "2026-11-20 18:00" --keys theme size
            """,
        discussion: """
            Shows what would change, and asks. Then it is one change, which goes to all devices \
            together and can be undone by another rewind. Keys that had no value are removed; those \
            that the history must not keep, and those whose value is not known any more, stay. Under \
            a conflict policy, the difference is written: what other devices count meanwhile stays.

            Status 1: what the keys were then is not known any more, so nothing could be compared.

            A time is what you would say, in your time zone: \(PastTime.examples).

            JSON: {"to", "changes", "forgotten", "sent", "notSentBecause"}; "changes" lists {"key", \
            "before", "after"}.
            """)

    @Option(
        help: ArgumentHelp("The time to go back to.", valueName: "time"), transform: notEmpty)
    var to: String

    @Option(
        parsing: .upToNextOption, help: ArgumentHelp("Only these keys.", valueName: "key"),
        completion: Completions.keys, transform: notEmpty)
    var keys: [String] = []

    @Flag(help: "Show what would change, without changing anything.")
    var dryRun = false

    @Flag(help: "Do not ask.")
    var yes = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup var time: TimeoutOption
    @OptionGroup var json: ValueJSONOption

    func validate() throws {
        if dryRun { try refuse(given(("--yes", yes)), "with --dry-run, which changes nothing.") }
    }

    func run() async throws {
        try PastTime().check(to)
        let keys = Set(try keys.map(Key.init))
        let policy = SyncPolicy(timeout: time.seconds(30))
        try await OpenStore.with(store, policy, ifMissing: .refuse) { open in
            try await open.exchange()
            let milliseconds = try await open.milliseconds(of: to)
            let past = try await open.snapshot(at: .milliseconds(milliseconds))
            let changes = ValueChange.all(
                from: open.store.values, to: open.store.values(of: past),
                without: past.forgottenKeys
            ).filter { keys.isEmpty || keys.contains($0.key) }
            let forgotten = past.forgottenKeys.sorted()
                .filter { keys.isEmpty || keys.contains($0) }
            let considered = Set(open.store.values.keys).union(open.store.values(of: past).keys)
                .union(past.forgottenKeys).filter { keys.isEmpty || keys.contains($0) }
            let isUnknown = !forgotten.isEmpty && considered.count == forgotten.count
            if isUnknown, !json.isOn {
                let time = Phrase.time(milliseconds)
                ValueChange.noteUnknownPast(of: forgotten)
                throw Failure(
                    .no, "nothing could be compared with \(time), and nothing was changed")
            }
            preview(changes, forgotten, milliseconds)
            try Question.confirm(
                "Change \(Phrase.keys(changes.count))?",
                isGiven: yes || dryRun || changes.isEmpty, otherwise: "nothing was changed")
            let outcome = try await write(changes, to: open)
            let isForPeople = try outcome.report(
                json,
                [
                    "to": .string(Phrase.isoTime(milliseconds)),
                    "changes": .array(changes.map(\.json)),
                    "forgotten": .array(forgotten.map { .string($0.string) }),
                ])
            if isForPeople, !changes.isEmpty, !dryRun {
                Output.note("Changed \(Phrase.keys(changes.count)).")
            }
            if isUnknown { throw ExitCode(1) }
        }
    }

    private func preview(_ changes: [ValueChange], _ forgotten: [Key], _ milliseconds: Int64) {
        if json.isOn { return }
        ValueChange.noteUnknownPast(of: forgotten)
        let time = Phrase.time(milliseconds)
        if changes.isEmpty {
            return Output.note(
                "\(forgotten.isEmpty ? "Everything" : "Everything else") is as it was at \(time).")
        }
        Output.note("Back to \(time):")
        Output.print(ValueChange.lines(changes))
    }

    private func write(
        _ changes: [ValueChange], to open: OpenStore
    ) async throws -> WriteOutcome {
        if dryRun { return WriteOutcome(unsent: .dryRun) }
        if changes.isEmpty { return WriteOutcome() }
        return try await open.revert(ValueChange.contents(changes))
    }
}
