// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore

struct DiffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Show how the store has changed since a time.",
        usage: "ubiquity diff --since yesterday",
        discussion: """
            A key with + is new, one with - is gone, one with ~ has another value. A note lists keys \
            whose earlier value is not known, because they have changed too often since, or are kept \
            out of the history.

            A time is what you would say, in your time zone: \(PastTime.examples).

            JSON: {"since", "changes", "forgotten"}; "changes" lists {"key", "before", "after"}.
            """)

    @Option(
        help: ArgumentHelp("The time to compare with.", valueName: "time"), transform: notEmpty)
    var since: String

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup var time: TimeoutOption
    @OptionGroup var json: ValueJSONOption

    func run() async throws {
        try PastTime().check(since)
        let policy = SyncPolicy(timeout: time.seconds(30))
        let (changes, forgotten, milliseconds) = try await OpenStore.with(
            store, policy, ifMissing: .refuse
        ) { open in
            try await open.exchange()
            let then = try await open.milliseconds(of: since)
            let past = try await open.snapshot(at: .milliseconds(then))
            return (
                ValueChange.all(
                    from: open.store.values(of: past), to: open.store.values,
                    without: past.forgottenKeys),
                past.forgottenKeys.sorted(), then
            )
        }
        if json.isOn {
            return json.print([
                "since": .string(Phrase.isoTime(milliseconds)),
                "changes": .array(changes.map(\.json)),
                "forgotten": .array(forgotten.map { .string($0.string) }),
            ])
        }
        ValueChange.noteUnknownPast(of: forgotten)
        let then = Phrase.time(milliseconds)
        if changes.isEmpty { return Output.note("Nothing has changed since \(then).") }
        Output.note("Since \(then):")
        Output.print(ValueChange.lines(changes))
    }
}
