// SPDX-License-Identifier: Apache-2.0

/// Divides a command line as the argument parser does, and arranges it for the parser, which takes a
/// number below zero for an option, and needs a list of elements at the end.
enum LineForm {
    /// The options of ``ValueOptions`` that are parsed as `.unconditional`: the next word is their
    /// value, even with a dash.
    private static let raw: Set<String> = ["--string", "--integer", "--real"]
    /// The options parsed as `.remaining`, which take the rest of the line.
    static let remaining: Set<String> = ["--array", "--dict"]

    /// - Returns: The words that may be options, without those that ``raw`` options take; and the rest
    ///   of the line, which begins with `--` or an option of ``remaining``, or is empty.
    static func parts(of arguments: [String]) -> (words: [String], rest: ArraySlice<String>) {
        var (words, rest, isValue) = ([String](), arguments[...], false)
        while let word = rest.first {
            if !isValue, word == "--" || remaining.contains(word) { break }
            if !isValue { words.append(word) }
            isValue = !isValue && raw.contains(word)
            rest.removeFirst()
        }
        return (words, rest)
    }

    static func arranged(_ arguments: [String], for command: NamedCommand) -> [String] {
        let isSet = command.path == ["set"]
        let hasElements = isSet && arguments.contains(where: remaining.contains)
        guard hasElements || arguments.contains(where: isNegative) else { return arguments }
        let parameters = command.parameters
        let line = hasElements ? elementsLast(arguments, parameters) : arguments
        let options = Set(parameters.filter { $0.kind == "option" }.compactMap(\.long))
        return joined(line, options, isSet: isSet)
    }

    /// Whether the text begins like a negative number, such as `-5` or `-.5`.
    static func isNegative(_ text: String) -> Bool {
        text.firstMatch(of: /^-\.?[0-9]/) != nil
    }

    /// - Parameters:
    ///   - options: The options that take a value.
    ///   - isSet: Whether the command is `set`, for which a negative number on its own is the value.
    private static func joined(
        _ arguments: [String], _ options: Set<String>, isSet: Bool
    ) -> [String] {
        let rest = parts(of: arguments).rest
        var line: [String] = []
        for word in arguments[..<rest.startIndex] {
            if !isNegative(word) {
                line.append(word)
            } else if let last = line.last, options.contains(last) {
                line[line.endIndex - 1] = "\(last)=\(word)"
            } else {
                line.append(isSet ? "--string=\(word)" : word)
            }
        }
        return line + rest
    }

    /// Other options may follow the elements: `set k --array a b --store s`.
    private static func elementsLast(
        _ arguments: [String], _ parameters: [NamedCommand.Parameter]
    ) -> [String] {
        let options = Set(parameters.compactMap(\.long) + ["--", "--help", "-h"])
        let rest = parts(of: arguments).rest
        let start = rest.startIndex
        guard let first = rest.first, first != "--" else { return arguments }
        var end = start + 1
        while end < arguments.endIndex {
            let word = arguments[end]
            let isType = ElementList.types[word] != nil
            guard isType || !options.contains(String(word.prefix { $0 != "=" })) else { break }
            end += isType ? 2 : 1
        }
        end = min(end, arguments.endIndex)
        let elements = arguments[(start + 1)..<end]
        return arguments[..<start] + arguments[end...] + [first]
            + (elements.isEmpty ? [ElementList.noElements] : elements)
    }
}
