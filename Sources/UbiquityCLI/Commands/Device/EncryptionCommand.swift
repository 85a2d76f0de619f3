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
                this command goes on, on this device or another one with the key. To a server that was \
                restored from before the account had its present key, it gives that key back.

                It cannot be undone: an account stays sealed, unless all of its values are deleted \
                (`ubiquity encryption reset`).

                JSON: as of `ubiquity encryption status`.
                """)

        @Flag(help: "Yes, seal it. The recovery key has to be typed back all the same.")
        var yes = false
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let sealing = AccountSealer(home: try home.open())
            var progress = try await sealing.goOn(asks: true)
            if let question = question(progress) {
                let plan = try await sealing.plan(progress)
                if progress.server.generation == 0, progress.step != .restored {
                    try await warn(progress.account)
                }
                try Question.confirm(question, isGiven: yes, otherwise: "nothing was changed")
                progress = try await sealing.mark(plan, after: progress)
            }
            if case .seal = progress.step { progress = try await finish(progress, sealing) }
            try await sealing.report(progress, json)
        }

        private func finish(
            _ progress: SealingProgress, _ sealing: AccountSealer
        ) async throws -> SealingProgress {
            try Question.confirm(
                """
                The server says that \(progress.server.unsealed.count) stores are not sealed with the \
                account's key. Go on only if it was being sealed a short time ago and that was \
                interrupted, or if the server was restored since: another server could learn from it \
                whether it has guessed a value. Seal them?
                """, isGiven: yes, otherwise: "nothing was changed")
            do {
                return try await sealing.goOn(finishing: true, asks: true)
            } catch SealingError.fault(let store, let fault) {
                guard fault.isOfRestored else { throw SealingError.fault(store, fault) }
                try Question.confirm(
                    """
                    In \(store.string), \(fault.description). Go on only if you know that the server was \
                    restored from a backup: another server could have made it up. Seal it?
                    """, isGiven: false, otherwise: "nothing was changed there")
                return try await sealing.goOn(isRestored: true, asks: true)
            }
        }

        /// Nil if there is no key to be made or given back.
        private func question(_ progress: SealingProgress) -> TerminalText? {
            switch progress.step {
            case .propose: "Seal the account?"
            case .mark:
                progress.server.generation == 0
                    ? "Seal the account, as was begun?" : "Change the account's key, as was begun?"
            case .restored where progress.canRestoreMark:
                """
                The server has an older key of the account than this device, or none. Go on only if you know \
                that it was restored from a backup: what it lacks, your devices give it again, sealed. Give it \
                this device's key back?
                """
            case .restored, .seal, .done, .getKey: nil
            }
        }

        private func warn(_ account: SignedInAccount) async throws {
            let others = try await AccountClient.devices(account)
                .filter { $0.id != account.device }.map(\.name)
            var lines: [TerminalText] = [
                "Sealing the account \(account.accountName) at \(account.server):", "",
                "  * From then on, only your devices can read its values.",
                "  * It cannot be undone: the account stays sealed, unless all of its values are deleted.",
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
                JSON: {"sealed", "generation", "hasKey", "unsealed", "recovery", "sealedBy", \
                "ends"}: "generation" is the number of the account's key, or 0; "hasKey" says whether \
                this device has it; "unsealed" lists the stores that are not sealed with it yet; \
                "recovery" says whether there is a recovery key, and is null if this device cannot \
                know; "sealedBy" is the {"device", "name", "time"} of who sealed the account with \
                this key; "ends" says when all values are deleted, because a device without the key \
                has asked for that, and is null if none has.
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
                First shows what devices that are signed out now, or without the key, have changed or \
                removed, because the history of all stores is erased. All values are sealed anew; \
                where something stands that nobody with the key has written, the last value that this \
                device has had is written anew. Other devices are locked until `ubiquity unlock` is \
                run on each of them. There is a new recovery key, and the old one is void.

                JSON: as of `ubiquity encryption status`.
                """)

        @Flag(help: "Yes, change it. The recovery key has to be typed back all the same.")
        var yes = false
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let sealing = AccountSealer(home: try home.open())
            var progress = try await sealing.goOn(asks: true)
            try sealing.checkKey(progress)
            if case .seal = progress.step {
                throw Failure(
                    .no,
                    "not all stores are sealed with the present key yet; `ubiquity encryption on` goes on"
                )
            }
            let plan = try await sealing.plan(progress)
            try Question.confirm(
                """
                Change the account's key? All other devices are locked until you unlock them, the history \
                is erased, and the present recovery key is void.
                """, isGiven: yes, otherwise: "nothing was changed")
            progress = try await sealing.mark(plan, after: progress)
            try await sealing.report(progress, json)
            Output.note("The recovery key from before is void: keep only the new one.")
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
                try await AccountClient.seal(
                    keyring, recovery: wrap, after: progress.server.generation, progress.account)
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
                The values of all stores and their history are deleted on the server, and the \
                account is not sealed any more. Devices keep what they have, and send nothing until \
                they are signed out and in again.

                A device with the account's key does that at once. Without the key, it happens after \
                seven days, so that a thief cannot do it behind your back: a device with the key \
                that reaches the server before then prevents it. The server's operator can do it at \
                once, with `ubiquity account reset`.

                JSON: {"account", "ends"}; "ends" says when, and is null if it is done.
                """)

        @Flag(help: "Yes, delete all values.") var yes = false
        @OptionGroup var home: HomeOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let progress = try await AccountSealer(home: try home.open()).progress()
            let (account, server) = (progress.account, progress.server)
            guard server.generation > 0 else { throw AccountSealer.notSealed }
            let hasKey = progress.keyring?.check == server.check
            let proof = hasKey ? progress.keyring?.proof(of: server.generation) : nil
            let name = account.accountName
            let question: TerminalText =
                proof == nil
                ? """
                This device does not have the account's key, so nothing is deleted before seven days \
                have passed, and nothing at all if a device with the key reaches the server. Have all \
                values of the account \(name) deleted on the server then, for good?
                """
                : """
                Delete all values of the account \(name) on the server, now and for good? Devices keep \
                what they have.
                """
            try Question.confirm(question, isGiven: yes, otherwise: "nothing was deleted")
            try await AccountClient.resetSealing(account, proof: proof)
            let ends = try await AccountClient.sealing(account).ends
            let sentence: TerminalText =
                if let ends {
                    """
                    All values of \(name) will be deleted on the server at \(Phrase.time(ends)), unless \
                    a device with the account's key reaches it before.
                    """
                } else {
                    """
                    Deleted all values of \(name) on the server. The account is not sealed any more. \
                    Sign each device out and in again.
                    """
                }
            json.print(
                [
                    "account": .string(name),
                    "ends": ends.map { .string(Phrase.isoTime($0)) } ?? .null,
                ], or: sentence)
        }
    }
}
