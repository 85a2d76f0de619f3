// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Testing
import UbiquityServer

@testable import UbiquityCLI

/// An option that would not count is refused before anything is done: of every command, and of every
/// way in which it can be given.
struct CountingOptionsTests {
    /// A command line, and the options that count beside it. All others of the command must not.
    struct Mode: CustomTestStringConvertible {
        var words: [String]
        var counts: Set<String>
        /// Of a command with many: those that do not count, instead.
        var isOthers = false

        var testDescription: String { words.joined(separator: " ") }

        func isCounting(_ option: Option) -> Bool {
            counts.contains(option.long ?? "") != isOthers
        }
    }

    private static let values: Set = [
        "--store", "--home", "--local", "--timeout", "--json", "--exact",
    ]
    private static let types: Set = [
        "--string", "--integer", "--real", "--bool", "--data", "--date", "--plist",
        "--json-value", "--array", "--dict",
    ]
    private static let server = ["--server", "https://prod.example"]
    private static let credential = server + ["--operator-credential", "file"]

    /// A command of the operator's: in the data folder, or by the credential.
    private static func operating(
        _ words: [String], _ own: Set<String> = [], namesServer: Bool = false
    ) -> [Mode] {
        let folder: Set = namesServer ? ["--data", "--server"] : ["--data"]
        let alone: Set = namesServer ? own.union(["--data", "--json"]) : []
        return [
            Mode(words: words, counts: own.union(folder).union(["--json"])),
            Mode(words: words + server, counts: alone.union(["--operator-credential"])),
            Mode(
                words: words + credential,
                counts: own.union(["--certificate", "--allow-plain-http", "--json"])),
        ]
    }

    private static func keeping(_ words: [String], _ own: Set<String> = []) -> [Mode] {
        [Mode(words: words, counts: own.union(["--account", "--home", "--json"]))]
            + operating(words + ["--account", "ada"], own)
    }

    static let modes: [Mode] =
        valueModes + historyModes + deviceModes + serverModes + keeping(["device", "list"])
        + keeping(["device", "rename", "d", "n"], ["--yes"])
        + keeping(["device", "revoke", "d"], ["--yes"])
        + [
            Mode(
                words: ["device", "revoke", "--others"], counts: ["--yes", "--home", "--json"])
        ] + keeping(["approve", "c"], ["--store", "--for", "--yes", "--deny"])
        + operating(
            ["account", "create", "ada"], ["--code-minutes", "--sign-in"], namesServer: true)
        + operating(
            ["account", "code", "ada"],
            ["--store", "--credential-days", "--code-minutes", "--sign-in"], namesServer: true)
        + [
            Mode(
                words: ["account", "create", "ada", "--sign-in"],
                counts: [
                    "--code-minutes", "--home", "--device-name", "--data", "--server", "--json",
                ]),
            Mode(
                words: ["pair", "--sign-in", "--home", "h"],
                counts: ["--store", "--for", "--device-name", "--json"]),
            Mode(words: ["ca"], counts: ["--home", "--data", "--json"]),
            Mode(words: ["ca", "f"], counts: ["--home", "--data", "--json", "--force"]),
            Mode(words: ["ca"] + server, counts: ["--operator-credential"]),
            Mode(
                words: ["ca"] + credential,
                counts: ["--certificate", "--allow-plain-http", "--json"]),
        ]
        + operating(["account", "list"]) + operating(["account", "rename", "ada", "eve"])
        + operating(
            ["account", "limits", "ada"],
            ["--store-bytes", "--keys", "--history-days", "--history-versions", "--history-bytes"])
        + operating(["account", "delete", "ada"], ["--yes"])
        + [Mode(words: ["account", "delete"], counts: ["--yes", "--wipe", "--home", "--json"])]
        + operating(["account", "export", "ada", "--output", "f"], ["--force", "--with-history"])
        + [
            Mode(
                words: ["account", "export", "--output", "f"],
                counts: ["--force", "--with-history", "--home", "--json"])
        ] + operating(["app", "register", "TEAM.app"], ["--name"]) + operating(["app", "list"])
        + operating(["app", "remove", "TEAM.app"]) + operating(["audit"], ["--limit"])

    /// One of each command, for what its other options do not change.
    private static let commandModes: [Mode] = {
        var paths: Set<[String]> = []
        return modes.filter { mode in
            commands.keys.first { mode.words.starts(with: $0) }
                .map { paths.insert($0).inserted } ?? false
        }
    }()

    private static let valueModes = [
        Mode(words: ["set", "k", "v"], counts: values),
        Mode(words: ["set", "k"], counts: types),
        Mode(words: ["get", "k"], counts: values.union(["--raw"])),
        Mode(words: ["get", "k", "--raw"], counts: values.subtracting(["--json", "--exact"])),
        Mode(words: ["get", "k", "l"], counts: values),
        Mode(words: ["remove", "k"], counts: values.subtracting(["--exact"])),
        Mode(
            words: ["remove", "--prefix", "k"],
            counts: values.union(["--yes"]).subtracting(["--exact"])),
        Mode(words: ["keys"], counts: values.union(["--prefix"]).subtracting(["--exact"])),
        Mode(words: ["list"], counts: values.union(["--prefix"])),
        Mode(
            words: ["list", "--local"],
            counts: ["--store", "--home", "--json", "--exact", "--prefix"]),
        Mode(words: ["watch"], counts: values.union(["--count", "--until", "--initial"])),
        Mode(
            words: ["import", "f"],
            counts: values.union(["--skip-invalid", "--dry-run"]).subtracting(["--exact"])),
        Mode(words: ["export"], counts: values.union(["--binary"])),
        Mode(words: ["export", "--binary"], counts: values.subtracting(["--json", "--exact"])),
        Mode(
            words: ["export", "-", "--binary"], counts: values.subtracting(["--json", "--exact"])),
        Mode(
            words: ["export", "f.plist", "--binary"],
            counts: values.union(["--force"]).subtracting(["--exact"])),
        Mode(words: ["store", "list"], counts: ["--home", "--local", "--timeout", "--json"]),
        Mode(
            words: ["store", "delete", "TEAM.app"],
            counts: ["--home", "--local", "--timeout", "--json", "--yes"]),
    ]

    private static let asking: Set = ["--store", "--home", "--timeout", "--json", "--exact"]

    private static let historyModes = [
        Mode(words: ["history"], counts: asking.union(["--limit"])),
        Mode(words: ["history", "k"], counts: values.union(["--limit"])),
        Mode(words: ["blame"], counts: asking),
        Mode(words: ["diff", "--since", "yesterday"], counts: asking),
        Mode(words: ["undo", "k"], counts: asking.union(["--to", "--dry-run"])),
        Mode(
            words: ["rewind", "--to", "yesterday"],
            counts: asking.union(["--keys", "--dry-run", "--yes"])),
    ]

    private static let deviceModes = [
        Mode(
            words: ["sign-in", "--code", "c", "--server", "https://prod.example"],
            counts: [
                "--device-name", "--replace", "--certificate", "--allow-plain-http", "--home",
                "--json", "--keep", "--yes",
            ]),
        Mode(
            words: ["sign-in", "--token-file", "f", "--server", "http://127.0.0.1:1"],
            counts: [
                "--device-name", "--replace", "--allow-plain-http", "--home", "--json", "--keep",
                "--yes",
            ]),
        Mode(
            words: ["sign-in", "--server", "https://prod.example"],
            counts: [
                "--code", "--token-file", "--store", "--for", "--device-name", "--replace",
                "--certificate", "--allow-plain-http", "--home", "--json", "--keep", "--yes",
            ]),
        Mode(
            words: ["sign-in", "https://prod.example#c"],
            counts: [
                "--device-name", "--replace", "--certificate", "--allow-plain-http", "--home",
                "--json", "--keep", "--yes",
            ]),
        Mode(words: ["pair"], counts: ["--store", "--for", "--home", "--json"]),
        Mode(
            words: ["encryption", "on"],
            counts: ["--yes", "--home", "--json"]),
        Mode(words: ["encryption", "status"], counts: ["--home", "--json"]),
        Mode(words: ["encryption", "rotate"], counts: ["--yes", "--home", "--json"]),
        Mode(words: ["encryption", "recovery"], counts: ["--new", "--home", "--json"]),
        Mode(words: ["encryption", "reset"], counts: ["--yes", "--home", "--json"]),
        Mode(words: ["unlock"], counts: ["--recovery", "--home", "--json"]),
        Mode(words: ["sign-out"], counts: ["--home", "--timeout", "--wipe", "--json"]),
        Mode(
            words: ["sign-out", "--wipe"], counts: ["--home", "--timeout", "--yes", "--json"]),
        Mode(words: ["sync"], counts: ["--store", "--home", "--timeout", "--until", "--json"]),
        Mode(words: ["delivery"], counts: ["--store", "--home", "--timeout", "--json"]),
        Mode(words: ["status"], counts: values.subtracting(["--exact"])),
        Mode(
            words: ["doctor"],
            counts: ["--data", "--database", "--local", "--store", "--home", "--json"]),
        Mode(words: ["doctor", "--data", "d"], counts: ["--json"]),
        Mode(words: ["doctor", "--database", "d"], counts: ["--json"]),
    ]

    private static let needIssuer: Set = [
        "--identity-audience", "--identity-keys", "--identity-claim", "--identity-name-claim",
        "--identity-days", "--identity-client",
    ]

    private static let needDatabase: Set = [
        "--database-connections", "--require-synchronous-standby",
    ]

    private static let serverModes = [
        Mode(
            words: ["serve"],
            counts: needIssuer.union(needDatabase).union([
                "--identity-issuer", "--tls-certificate", "--tls-key", "--metrics-host",
            ]), isOthers: true),
        Mode(
            words: ["serve", "--database", "postgresql://host/name"],
            counts: needIssuer.union([
                "--data", "--lan", "--identity-issuer", "--tls-certificate", "--tls-key",
                "--metrics-host",
            ]), isOthers: true),
        Mode(
            words: ["serve", "--tls-certificate", "c", "--tls-key", "k", "--metrics-port", "1"],
            counts: needIssuer.union(needDatabase).union(["--identity-issuer", "--lan"]),
            isOthers: true),
        Mode(
            words: ["serve", "--identity-issuer", "https://i.example"]
                + ["--identity-audience", "a", "--identity-keys", "k"],
            counts: needDatabase.union([
                "--tls-certificate", "--tls-key", "--metrics-host",
            ]), isOthers: true),
        Mode(
            words: ["backup", "--output", "f"],
            counts: ["--data", "--force", "--seconds-max", "--json"]),
        Mode(
            words: ["restore", "f"],
            counts: ["--data", "--replace", "--sign-out-devices", "--json"]),
        Mode(words: ["database", "migrate"], counts: ["--database", "--json"]),
        Mode(words: ["database", "check"], counts: ["--database", "--json"]),
        Mode(words: ["database", "credential"], counts: ["--database", "--json"]),
        Mode(
            words: ["database", "copy"], counts: ["--data", "--database", "--back", "--json"]),
    ]

    // MARK: - The commands as the parser has them

    typealias Option = NamedCommand.Parameter

    struct Command: Decodable {
        var commandName: String
        var subcommands: [Command]?
        var arguments: [Option]?

        /// With no commands below them, by the words that name them.
        func leaves(_ path: [String] = []) -> [[String]: [Option]] {
            let commands = (subcommands ?? []).filter { $0.commandName != "help" }
            if commands.isEmpty { return [path: arguments ?? []] }
            return commands.reduce(into: [:]) { leaves, command in
                leaves.merge(command.leaves(path + [command.commandName])) { $1 }
            }
        }
    }

    private struct Tool: Decodable { var command: Command }

    private static let commands: [[String]: [Option]] = {
        let tool = try? JSONDecoder().decode(Tool.self, from: Data(Program._dumpHelp().utf8))
        return tool?.command.leaves() ?? [:]
    }()

    /// The options that a mode may have besides its own.
    private func options(_ mode: Mode) throws -> [Option] {
        let path = try #require(
            Self.commands.keys.first { mode.words.starts(with: $0) }, "\(mode.words) is no command")
        return Self.commands[path, default: []].filter { option in
            guard let name = option.long, !["--help", "--version"].contains(name) else {
                return false
            }
            return !mode.words.contains(name)
        }
    }

    private func words(_ option: Option) -> [String] {
        guard let name = option.long, option.kind == "option" else { return [option.long ?? ""] }
        let samples = [
            "--server": "https://prod.example", "--apps": "registered", "--key-limit": "64-bytes",
            "--log-level": "info",
            "--log-format": "json", "--for": "30d", "--keep": "newest",
            "--trusted-proxy": "10.0.0.0/8", "--allowed-origin": "https://a.example",
            "--database": "postgresql", "--config": "/dev/null",
        ]
        return [name, samples[name] ?? "5"]
    }

    /// Without what the program makes of the parser's error for people, and by the command alone: in a
    /// debug build, the parser checks the declarations of all commands below the one that parses, which
    /// takes a tenth of a second for the program. Others get the thread in between: a server in this
    /// process would not answer meanwhile.
    private func parses(_ words: [String]) async -> Bool {
        await Task.yield()
        var command: any ParsableCommand.Type = Program.self
        var words = words[...]
        while let next = command.configuration.subcommands.first(where: {
            $0._commandName == words.first
        }) {
            command = next
            words.removeFirst()
        }
        return (try? command.parseAsRoot(Array(words))) != nil
    }

    // MARK: - The tests

    @Test func `a shell completes each path`() throws {
        func parameters(_ command: [String: Any]) -> [[String: Any]] {
            let subcommands = command["subcommands"] as? [[String: Any]] ?? []
            return (command["arguments"] as? [[String: Any]] ?? [])
                + subcommands.flatMap(parameters)
        }
        let tool = try JSONSerialization.jsonObject(with: Data(Program._dumpHelp().utf8))
        let command = try #require((tool as? [String: Any])?["command"] as? [String: Any])
        let paths = parameters(command).compactMap { parameter -> (name: String, shell: String?)? in
            let name = parameter["valueName"] as? String ?? ""
            guard !Set(name.split(separator: "-")).isDisjoint(with: ["file", "folder", "path"])
            else { return nil }
            return (name, (parameter["completionKind"] as? [String: Any])?.keys.first)
        }
        #expect(paths.count > 20)
        for path in paths {
            #expect(path.shell == (path.name == "folder" ? "directory" : "file"), "\(path)")
        }
    }

    @Test func `every command is looked at`() {
        let seen = Self.commands.keys.filter { path in
            Self.modes.contains { $0.words.starts(with: path) }
        }
        #expect(Set(seen) == Set(Self.commands.keys))
        #expect(seen.count > 20)
    }

    @Test(arguments: modes)
    func `an option has an effect, or is an error`(_ mode: Mode) async throws {
        let options = try options(mode)
        let names = Set(options.compactMap(\.long))
        // A name that is spelt wrong here would prove nothing.
        #expect(mode.counts.subtracting(names).isEmpty)
        // Those that count are tried together below; here is one of them alone, another in each run.
        let alone = options.filter(mode.isCounting).shuffled().prefix(1)
        for option in options.filter({ !mode.isCounting($0) }) + alone {
            let line = mode.words + words(option)
            #expect(
                await parses(line) == mode.isCounting(option), "\(line.joined(separator: " "))")
        }
    }

    /// Whether each of these options is valid alone, but not together with the other.
    private static func clash(_ names: Set<String>, in command: String?) -> Bool {
        // A value has one type.
        if names == ["--local", "--timeout"] || names == ["--json", "--exact"]
            || names.isSubset(of: types)
        {
            return true
        }
        // A server has one place for its data, and a copy has two.
        if names == ["--data", "--database"] { return command != "database" }
        return switch command {
        case "rewind": names == ["--dry-run", "--yes"]
        case "get": names.contains("--raw") && !names.isDisjoint(with: ["--json", "--exact"])
        case "export":
            names.contains("--binary") && !names.isDisjoint(with: ["--json", "--exact"])
        case "doctor":
            !names.isDisjoint(with: ["--data", "--database"]) && !names.contains("--json")
        case "device": names == ["--account", "--home"]
        case "approve":
            names == ["--account", "--home"]
                || names.contains("--deny")
                    && !names.isDisjoint(with: ["--store", "--for", "--yes"])
        case "sign-in":
            names == ["--code", "--token-file"]
                || !names.isDisjoint(with: ["--code", "--token-file"])
                    && !names.isDisjoint(with: ["--store", "--for"])
        case "account": names == ["--operator-credential", "--data"]
        case "ca": names == ["--home", "--data"]
        case "serve":
            names.contains("--lan")
                && !names.isDisjoint(with: ["--database", "--tls-certificate", "--tls-key"])
        default: false
        }
    }

    /// Lines that have each of the options, and each two together that do not clash: many pairs in one
    /// line, for a refusal of two is not lifted by a third.
    private func lines(_ mode: Mode, _ options: [Option]) -> [[Option]] {
        func clash(_ one: Option, _ other: Option) -> Bool {
            Self.clash(Set([one, other].compactMap(\.long)), in: mode.words.first)
        }
        var covered: Set<Set<String?>> = []
        var lines: [[Option]] = []
        for (one, other) in Self.pairs(options) where !clash(one, other) {
            guard !covered.contains([one.long, other.long]) else { continue }
            let line = options.reduce(into: [one, other]) { line, option in
                let isNew = !line.contains { $0.long == option.long || clash($0, option) }
                if isNew { line.append(option) }
            }
            for (one, other) in Self.pairs(line) { covered.insert([one.long, other.long]) }
            lines.append(line)
        }
        let single = options.filter { option in
            !lines.joined().contains { $0.long == option.long }
        }
        return lines + single.map { [$0] }
    }

    private static func pairs(_ options: [Option]) -> [(Option, Option)] {
        options.indices.flatMap { index in
            options[(index + 1)...].map { (options[index], $0) }
        }
    }

    @Test(arguments: modes)
    func `two options both have an effect, or are an error`(_ mode: Mode) async throws {
        let counting = try options(mode).filter(mode.isCounting)
        for options in lines(mode, counting) {
            let line = mode.words + options.flatMap(words)
            #expect(await parses(line), "\(line.joined(separator: " "))")
        }
        for (one, other) in Self.pairs(counting)
        where Self.clash(Set([one, other].compactMap(\.long)), in: mode.words.first) {
            let line = mode.words + words(one) + words(other)
            #expect(await !parses(line), "\(line.joined(separator: " "))")
        }
    }

    /// An option given twice is refused whatever the argument parser says of the line.
    @Test(arguments: commandModes)
    func `an option that is given twice is an error, unless it collects`(_ mode: Mode) async throws
    {
        for option in try options(mode) where mode.isCounting(option) {
            let line = mode.words + words(option) + words(option)
            if option.isRepeating {
                #expect(await parses(line), "\(line.joined(separator: " "))")
            } else {
                #expect(throws: ValidationError.self, "\(line.joined(separator: " "))") {
                    try RepeatedOptions.check(line)
                }
            }
        }
    }

    /// The values of `set` are looked at when they are read, and a text may be empty.
    @Test(arguments: commandModes)
    func `an empty name is an error`(_ mode: Mode) async throws {
        // The limits have one rule, which `SettingsTests` tries.
        let limits = Set(ServerLimit.all.map { "--" + $0.option })
        for option in try options(mode) where option.kind == "option" {
            guard let name = option.long else { continue }
            if mode.words.first == "serve", limits.contains(name) { continue }
            if mode.words.first == "set", Self.types.contains(name) { continue }
            #expect(await !parses(mode.words + [name, ""]), "\(mode.words) \(name) ''")
        }
    }

    @Test(arguments: [
        ["account", "delete", "", "--yes"], ["account", "create", ""], ["account", "export", ""],
        ["account", "rename", "a", ""], ["app", "register", ""],
        ["app", "register", "a", "--name", ""],
        ["device", "revoke", ""],
        ["import", ""], ["export", ""], ["restore", ""], ["approve", ""], ["sign-in", ""],
    ])
    func `an empty argument is an error`(_ words: [String]) async {
        #expect(await !parses(words))
    }

    @Test func `a certificate and its key go together`() async {
        #expect(await !parses(["serve", "--tls-certificate", "c"]))
        #expect(await !parses(["serve", "--tls-key", "k"]))
        #expect(await parses(["serve", "--tls-certificate", "c", "--tls-key", "k"]))
    }

    @Test func `a value that looks like an option is not taken for one given twice`() {
        func parses(_ words: String...) -> Bool { (try? Program.parsed(words)) != nil }
        #expect(parses("set", "k", "--string", "--string"))
        #expect(parses("set", "--", "k", "--local"))
        #expect(!parses("set", "k", "v", "--store", "a", "--store=b"))
        #expect(!parses("backup", "-o", "a", "--output", "b"))
    }

    @Test func `an operator's command that would work elsewhere says so`() throws {
        let error = #expect(throws: (any Error).self) {
            try Program.parsed(
                ["account", "delete", "zoe", "--yes", "--server", "https://prod.example"])
        }
        let sentence = Program.message(for: try #require(error))
        #expect(sentence.contains("--server has no effect without --operator-credential"))
    }
}
