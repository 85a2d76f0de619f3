// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore

struct EncryptionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "encryption",
        abstract: "Seal the account, so that only your devices can read its values.",
        discussion: """
            The server of a sealed account keeps values that it cannot read: neither its operator, \
            nor its backups, nor a proxy. It still sees the names of stores and keys, sizes, times, \
            and the numbers of counters. Apps notice nothing. A device that is added gets the \
            account's key with the code that adds it (`ubiquity pair`, `ubiquity approve`); \
            `ubiquity unlock` gives it to one that has none.
            """,
        subcommands: [On.self, Status.self, Rotate.self, Recovery.self, Reset.self])

    struct On: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Seal the account with a key that only your devices have.",
            discussion: """
                First says what that means, and asks. Then shows the account's recovery key, the \
                way in when all devices are lost, which has to be typed back. If it was interrupted, \
                this command goes on, on this device or another one with the key.

                JSON: {"sealed", "generation", "hasKey", "unsealed", "recovery"}, as of \
                `ubiquity encryption status`.
                """)

        @Flag(help: "Yes, seal it. The recovery key has to be typed back all the same.")
        var yes = false
        @Flag(
            help:
                "Remove values that no key of this device opens, where others keep a store unsealed."
        )
        var removeUnopened = false
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let sealing = AccountSealer(home: try home.open(), removesUnopened: removeUnopened)
            var progress = try await sealing.goOn()
            if [.propose, .mark].contains(progress.step) {
                if progress.server.generation == 0 { try await warn(progress.account) }
                try Question.confirm(
                    progress.server.generation == 0
                        ? "Seal the account?" : "Change the account's key, as was begun?",
                    isGiven: yes, otherwise: "nothing was changed")
                progress = try await sealing.mark(progress)
            }
            if case .seal = progress.step {
                try Question.confirm(
                    """
                    The server says that \(progress.server.unsealed.count) stores are not sealed with the \
                    account's key. Go on only if it was being sealed a short time ago and that was \
                    interrupted, or if the server was restored since: another server could learn from it \
                    whether it has guessed a value. Seal them?
                    """, isGiven: yes, otherwise: "nothing was changed")
                progress = try await sealing.goOn(finishing: true)
            }
            try await sealing.report(progress, json)
        }

        private func warn(_ account: SignedInAccount) async throws {
            let others = try await AccountClient.devices(account)
                .filter { $0.id != account.device }.map(\.name)
            var lines: [TerminalText] = [
                "Sealing the account \(account.accountName) at \(account.server):", "",
                "  * From then on, only your devices can read its values.",
                "  * The history of all stores is erased: undo and rewind begin anew.",
                "  * Backups that the server's operator has made before stay readable.",
                "  * If you lose all your devices and the recovery key, nobody can help you.",
            ]
            if !others.isEmpty {
                lines.append(
                    "  * These devices are locked until `ubiquity unlock` is run on them: "
                        + "\(others.joined(separator: ", "))")
            }
            Output.note(TerminalText(lines: lines + [""]))
        }
    }

    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show whether the account is sealed, and seal what is not yet.",
            discussion: """
                JSON: {"sealed", "generation", "hasKey", "unsealed", "recovery"}: "generation" is \
                the number of the account's key, or 0; "hasKey" says whether this device has it; \
                "unsealed" lists the stores that are not sealed with it yet; "recovery" says whether \
                there is a recovery key, and is null if this device cannot know.
                """)

        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let sealing = AccountSealer(home: try home.open())
            try await sealing.report(try await sealing.goOn(), json, isQuestion: true)
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change the account's key, for example after a device was lost.",
            discussion: """
                All values are sealed anew. Other devices are locked until `ubiquity unlock` is run \
                on each of them, and there is a new recovery key; the old one opens nothing any \
                more.

                JSON: as of `ubiquity encryption status`.
                """)

        @Flag(help: "Yes, change it. The recovery key has to be typed back all the same.")
        var yes = false
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let sealing = AccountSealer(home: try home.open())
            var progress = try await sealing.goOn()
            try sealing.checkKey(progress)
            if case .seal = progress.step {
                throw Failure(
                    .no,
                    "not all stores are sealed with the present key yet; `ubiquity encryption on` goes on"
                )
            }
            try Question.confirm(
                "Change the account's key? All other devices are locked until you unlock them.",
                isGiven: yes, otherwise: "nothing was changed")
            progress = try await sealing.mark(progress)
            try await sealing.report(progress, json)
        }
    }

    struct Recovery: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show whether there is a recovery key, or make a new one.",
            discussion: """
                The recovery key itself is nowhere but where you have kept it. With --new, the server \
                keeps what only the new one opens. The old one still opens what a backup of the server \
                has, and with it the account's present key: if somebody else may have seen it, run \
                `ubiquity encryption rotate`, which changes that key.

                JSON: {"recovery"}.
                """)

        @Flag(help: "Make a new recovery key.") var new = false
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let sealing = AccountSealer(home: try home.open())
            let progress = try await sealing.goOn()
            guard progress.server.generation > 0 else { throw AccountSealer.notSealed }
            if new {
                try sealing.checkKey(progress)
                guard let keyring = progress.keyring else { throw AccountSealer.locked }
                let wrap = try sealing.newRecovery(of: keyring, .random())
                try await AccountClient.seal(keyring, recovery: wrap, progress.account)
            }
            let isKept = new || !progress.server.recovery.isEmpty
            json.print(
                ["recovery": .boolean(isKept)],
                or: new
                    ? "The account has a new recovery key. If somebody else may have seen the old one, change "
                        + "the account's key with `ubiquity encryption rotate`: in a backup of the server, the "
                        + "old one still opens it."
                    : isKept
                        ? "The account has a recovery key."
                        : "The account has no recovery key that this device knows of.")
        }
    }

    struct Reset: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete all values of a sealed account, if every key is lost.",
            discussion: """
                The values of all stores and their history are gone, on the server and on this \
                device. The account is not sealed any more, and its devices stay signed in. Other \
                devices with a key send nothing until they have run `ubiquity sign-out --wipe` and \
                signed in again; what they should keep, `ubiquity export` saves before.

                JSON: {"account"}.
                """)

        @Flag(help: "Yes, delete all values.") var yes = false
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let home = try home.open()
            let progress = try await AccountSealer(home: home).progress()
            guard progress.server.generation > 0 else { throw AccountSealer.notSealed }
            let name = progress.account.accountName
            let loss = try home.loss.map { "\($0). " as TerminalText } ?? ""
            try Question.confirm(
                "\(loss)Delete all values of the account \(name) for good, on the server and here?",
                isGiven: yes, otherwise: "nothing was deleted")
            try await home.resetSealing(progress.account)
            json.print(
                ["account": .string(name)],
                or: "Deleted all values of \(name). The account is not sealed any more.")
        }
    }
}
