// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct StoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "List the stores of your account, or empty one.",
        subcommands: [List.self, Delete.self])

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove all keys of a store, on all devices.",
            discussion: """
                Says how much would be lost, and asks. The removal is one change, which reaches \
                all devices as a whole; `ubiquity rewind` undoes it as long as the server keeps \
                the history. The store itself stays in the list, empty.

                A device that is signed in must reach the server, so that nothing is left; with \
                --local, the keys that this device knows are removed.

                JSON: {"store", "removed", "sent", "notSentBecause"}; "removed" is the number of \
                keys.
                """)

        @Argument(
            help: "The store's identifier.", completion: Completions.stores, transform: notEmpty)
        var store: String

        @Flag(help: "Do not ask.")
        var yes = false

        @OptionGroup var home: HomeOptions
        @OptionGroup(title: "Server") var sync: SyncOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            var options = StoreOptions()
            (options.store, options.home) = (store, home)
            try await OpenStore.with(options, sync.policy, ifMissing: .refuse) { open in
                if open.account != nil, !sync.local { try await open.exchange() }
                let keys = open.store.values.keys
                guard !keys.isEmpty else {
                    throw Failure(.no, "the store \(store) has no keys")
                }
                try confirm(open)
                let changes = Dictionary(keys.map { ($0, Content.deleted) }) { first, _ in first }
                try report(keys.count, try await open.write(changes))
            }
        }

        private func confirm(_ open: OpenStore) throws(Failure) {
            let usage = open.store.engineStatus.usage
            let place = open.account.map { "all devices of \($0.accountName)" } ?? "this device"
            let loss = "\(Phrase.keys(usage.keys)), \(Phrase.bytes(usage.bytes))"
            try Question.confirm(
                "Remove everything in the store \(store) (\(loss)) from \(place)?",
                isGiven: yes, otherwise: "nothing was removed")
        }

        private func report(_ count: Int, _ outcome: WriteOutcome) throws {
            let isForPeople = try outcome.report(
                json, ["store": .string(store), "removed": .integer(count)])
            guard isForPeople else { return }
            Output.print("Removed \(Phrase.keys(count)) of the store \(store).")
            Output.note(
                outcome.unsent == nil
                    ? "The empty store stays in `ubiquity store list`. `ubiquity rewind` brings the "
                        + "keys back, as long as the server keeps the history."
                    : "The empty store stays in `ubiquity store list`.")
        }
    }
}
