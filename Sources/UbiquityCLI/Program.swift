// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BuildCommit
import Foundation
import Ubiquity

/// The program `ubiquity`.
@main
struct Program: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ubiquity",
        abstract: "Preferences and other small values that follow a person across their devices.",
        discussion: """
            Commands that read or write values need a store: give its identifier with --store, or \
            in the environment variable UBIQUITY_KVSTORE_IDENTIFIER. With --json, a command \
            prints only JSON on standard output, one document on one line. What a terminal would \
            obey is escaped on a terminal, and never in a pipe or file.

            Errors are one sentence on standard error, with a status from sysexits.h: 64 wrong \
            usage, 65 unusable input, 66 no such file, 69 server unreachable, 73 or 74 a file \
            cannot be created or used, 77 not signed in or not allowed.
            """,
        version: version,
        groupedSubcommands: [
            CommandGroup(
                name: "Values",
                subcommands: [
                    SetCommand.self, GetCommand.self, RemoveCommand.self, ListCommand.self,
                    KeysCommand.self, WatchCommand.self, ImportCommand.self, ExportCommand.self,
                    StoreCommand.self,
                ]),
            CommandGroup(
                name: "History",
                subcommands: [
                    HistoryCommand.self, BlameCommand.self, DiffCommand.self, UndoCommand.self,
                    RewindCommand.self,
                ]),
            CommandGroup(
                name: "This device",
                subcommands: [
                    SignInCommand.self, SignOutCommand.self, PairCommand.self,
                    ApproveCommand.self, SyncCommand.self, StatusCommand.self,
                    DeviceCommand.self, DeliveryCommand.self, EncryptionCommand.self,
                    UnlockCommand.self, DoctorCommand.self,
                ]),
            CommandGroup(
                name: "The server",
                subcommands: [
                    ServeCommand.self, AuthorityCommand.self, AccountCommand.self, AppCommand.self,
                    AuditCommand.self,
                    BackupCommand.self, RestoreCommand.self, DatabaseCommand.self,
                ]),
        ])

    /// Replaces the argument parser's `main` in order to print errors for people.
    static func main() async {
        Output.prepare()
        Self.forbidCoreDumps()
        do {
            try GivenText.check()
            var command = try parsed(Array(CommandLine.arguments.dropFirst()))
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            end(for: error)
        }
    }

    /// Such as "0.9.0 (1a2b3c4d)", with the commit if the build was told.
    private static var version: String {
        ClientVersion.text
            + (ubiquity_build_commit().map { " (\(String(cString: $0)))" } ?? "")
    }

    /// - Throws: The argument parser's errors, and ``Failure`` for a setting from elsewhere.
    static func parsed(_ arguments: [String]) throws -> any ParsableCommand {
        // A shell asks for completions in a language of its own.
        if arguments.first?.hasPrefix("---") ?? false { return try parseAsRoot(arguments) }
        return try parseAsRoot(
            try ServeConfiguration.expanded(LineForm.arranged(arguments, of: Self.self)))
    }

    /// Keeps credentials and keys of accounts out of files that a crash would leave.
    private static func forbidCoreDumps() {
        // At 0, Linux still gives the memory to a program that collects dumps; 1 is too little for either.
        var limit = rlimit(rlim_cur: 1, rlim_max: 1)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    }

    private static func end(for error: any Error) -> Never {
        if let failure = Failure(error) {
            Output.note("ubiquity: \(TerminalText(lines: withoutSecrets(failure.sentence)))")
            Output.end(failure.status)
        }
        let (message, status) = (fullMessage(for: error), exitCode(for: error))
        if status.isSuccess {
            Output.print(TerminalText(lines: message))
        } else if !message.isEmpty {
            Output.note("ubiquity: \(withoutSecrets(line(of: message)))")
        }
        Self.exit(withError: ExitCode(status.rawValue))
    }

    /// The sentence without the rest of a code that begins with `ubiquity:`, however it was mistyped.
    private static func withoutSecrets(_ sentence: String) -> String {
        sentence.replacing(/(?i)ubiquity:[^\s'"`]+/, with: "ubiquity:...")
    }

    /// The argument parser's sentence, with a hint where to read more instead of its usage lines.
    private static func line(of message: String) -> String {
        let prefix = "Error: "
        let rest = message.hasPrefix(prefix) ? message.dropFirst(prefix.count) : message[...]
        var sentence = rest.prefix { !$0.isNewline }
        // More than five choices are in lines of their own.
        let choices = rest.matches(of: /\n +- (?<choice>.+)/).map { String($0.choice) }
        if sentence.hasSuffix(" one of the following:"), let last = choices.last {
            let others = choices.dropLast().joined(separator: ", ")
            sentence = sentence.dropLast("the following:".count) + "\(others) or \(last)"
        }
        guard let match = message.firstMatch(of: /See '(?<command>.+ --help)'/) else {
            return String(sentence)
        }
        if sentence.hasSuffix("?") { return String(sentence) }
        let open = sentence.hasSuffix(".") ? sentence.dropLast() : sentence
        return "\(open); see `\(match.command)`"
    }
}
