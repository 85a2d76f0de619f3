// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// The command that a line names, as far as the program has it.
struct NamedCommand {
    private(set) var type: any ParsableCommand.Type
    private let program: String
    /// The words that name it, without the program's.
    private(set) var path: [String] = []
    /// The word where a subcommand should be; nil if there is none, or if it is an option.
    private(set) var unknown: String?

    init(_ arguments: [String], of program: any ParsableCommand.Type) {
        (type, self.program) = (program, program._commandName)
        for word in arguments {
            let commands = type.configuration.subcommands
            guard !commands.isEmpty, !word.hasPrefix("-") else { break }
            guard let next = commands.first(where: { $0.isCalled(word) }) else {
                unknown = word
                break
            }
            type = next
            path.append(word)
        }
    }

    var text: String { ([program] + path).joined(separator: " ") }

    /// - Throws: ``Failure`` for a word that is not a command.
    func check() throws(Failure) {
        guard let unknown else { return }
        let line = (path + [unknown]).joined(separator: " ")
        // A key path of a type crashes the compiler (Swift 6.3.1).
        let names = type.configuration.subcommands.filter { $0.configuration.shouldDisplay }
            .map { $0._commandName }
        let near = Spelling.nearest(to: unknown, among: names, familiar: Spelling.commands)
        throw Failure(
            .usage,
            "there is no command `\(line)`; "
                + (near.map { "did you mean `\(text) \($0)`?" } ?? "see `\(text) --help`"))
    }

    /// An option or argument of a command, as the argument parser describes it.
    struct Parameter: Decodable {
        struct Name: Decodable {
            var kind: String
            var name: String
        }
        var kind: String
        var shouldDisplay: Bool
        var isRepeating: Bool
        var names: [Name]?
        var defaultValue: String?
        var abstract: String?

        /// With its dashes.
        var long: String? { names?.first { $0.kind == "long" }.map { "--" + $0.name } }
        var all: [String] {
            names?.map { ($0.kind == "long" ? "--" : "-") + $0.name } ?? []
        }
    }

    /// - Complexity: Some milliseconds: only for errors and rare forms of a line.
    var parameters: [Parameter] { Self.parameters(of: type) }

    static func parameters(of command: any ParsableCommand.Type) -> [Parameter] {
        struct Tool: Decodable { var command: Command }
        struct Command: Decodable { var arguments: [Parameter]? }
        let tool = try? JSONDecoder().decode(Tool.self, from: Data(command._dumpHelp().utf8))
        return tool?.command.arguments ?? []
    }
}

extension NamedCommand {
    /// A better sentence about a line that the argument parser refuses.
    /// - Returns: Nil if there is none.
    func failure(for error: any Error, in arguments: [String]) -> Failure? {
        // A request for help is an error to the argument parser.
        guard !type.exitCode(for: error).isSuccess else { return nil }
        if let option = unknownOption(in: arguments) {
            let names = parameters.filter { $0.shouldDisplay }.compactMap(\.long)
            // `defaults` has long names with one dash.
            let long = option.hasPrefix("--") || option.count == 2 ? option : "-" + option
            let near = Spelling.nearest(to: long, among: names, familiar: Spelling.options)
            return Failure(
                .usage,
                "`\(text)` has no option \(option); "
                    + (near.map { "did you mean \($0)?" } ?? "see `\(text) --help`"))
        }
        guard type.message(for: error).hasPrefix("Missing expected argument"),
            let number = arguments.first(where: LineForm.isNegative)
        else { return nil }
        return Failure(
            .usage, "there is no key; write -- before one that begins with a dash: -- \(number)")
    }

    /// The first of the line that the command does not have.
    private func unknownOption(in arguments: [String]) -> String? {
        let known = Set(parameters.flatMap(\.all) + ["--help", "-h", "--version"])
        for word in LineForm.parts(of: arguments).words {
            guard word.count > 1, word.hasPrefix("-"), !LineForm.isNegative(word) else { continue }
            let name = String(word.prefix { $0 != "=" })
            if !known.contains(name) { return name }
        }
        return nil
    }
}

extension ParsableCommand {
    fileprivate static func isCalled(_ name: String) -> Bool {
        _commandName == name || configuration.aliases.contains(name)
    }
}
