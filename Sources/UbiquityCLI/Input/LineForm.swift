// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Arranges a command line for the argument parser, which takes a number below zero for an option, and
/// needs a list of elements at the end.
enum LineForm {
    /// The options of ``ValueOptions`` that are parsed as `.unconditional`: the next word is their
    /// value, even with a dash.
    private static let raw: Set<String> = ["--string", "--integer", "--real"]
    /// The options parsed as `.remaining`, which take the rest of the line.
    private static let remaining: Set<String> = ["--array", "--dict"]

    /// The index before which options may be: that of `--`, or of an option of ``remaining``.
    private static func end(of arguments: [String]) -> Int {
        var isValue = false
        for (index, word) in arguments.enumerated() {
            if !isValue, word == "--" || remaining.contains(word) { return index }
            isValue = !isValue && raw.contains(word)
        }
        return arguments.endIndex
    }

    /// - Parameter program: What has the command that the line names.
    static func arranged(
        _ arguments: [String], of program: any ParsableCommand.Type
    ) -> [String] {
        let isSet = arguments.first == "set"
        let hasElements = isSet && arguments.contains(where: remaining.contains)
        guard hasElements || arguments.contains(where: isNegative) else { return arguments }
        let parameters = CommandParameter.all(of: command(named: arguments, of: program))
        let line = hasElements ? elementsLast(arguments, parameters) : arguments
        let options = Set(parameters.filter { $0.kind == "option" }.compactMap(\.long))
        return joined(line, options, isSet: isSet)
    }

    private static func command(
        named arguments: [String], of program: any ParsableCommand.Type
    ) -> any ParsableCommand.Type {
        var command = program
        for word in arguments {
            let next = command.configuration.subcommands.first {
                $0._commandName == word || $0.configuration.aliases.contains(word)
            }
            guard let next else { break }
            command = next
        }
        return command
    }

    /// Whether the text begins like a negative number, such as `-5` or `-.5`.
    private static func isNegative(_ text: String) -> Bool {
        text.firstMatch(of: /^-\.?[0-9]/) != nil
    }

    /// - Parameters:
    ///   - options: The options that take a value.
    ///   - isSet: Whether the command is `set`, for which a negative number on its own is the value.
    private static func joined(
        _ arguments: [String], _ options: Set<String>, isSet: Bool
    ) -> [String] {
        let end = end(of: arguments)
        var line: [String] = []
        for word in arguments[..<end] {
            if !isNegative(word) {
                line.append(word)
            } else if let last = line.last, options.contains(last) {
                line[line.endIndex - 1] = "\(last)=\(word)"
            } else {
                line.append(isSet ? "--string=\(word)" : word)
            }
        }
        return line + arguments[end...]
    }

    /// Other options may follow the elements: `set k --array a b --store s`.
    private static func elementsLast(
        _ arguments: [String], _ parameters: [CommandParameter]
    ) -> [String] {
        let options = Set(parameters.compactMap(\.long) + ["--", "--help", "-h"])
        let start = Self.end(of: arguments)
        guard start < arguments.endIndex, arguments[start] != "--" else { return arguments }
        var end = start + 1
        while end < arguments.endIndex {
            let word = arguments[end]
            let isType = ElementList.types[word] != nil
            guard isType || !options.contains(String(word.prefix { $0 != "=" })) else { break }
            end += isType ? 2 : 1
        }
        end = min(end, arguments.endIndex)
        let elements = arguments[(start + 1)..<end]
        return arguments[..<start] + arguments[end...] + [arguments[start]]
            + (elements.isEmpty ? [ElementList.noElements] : elements)
    }
}
