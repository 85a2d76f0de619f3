// SPDX-License-Identifier: Apache-2.0

/// Arranges a command line for the argument parser, which takes a number below zero for an option,
/// and needs a list of elements at the end.
enum LineForm {
    static func arranged(_ arguments: [String], for command: NamedCommand) -> [String] {
        let isSet = command.path == ["set"]
        let hasElements = isSet && arguments.contains(where: RepeatedOptions.remaining.contains)
        guard hasElements || arguments.contains(where: isNegative) else { return arguments }
        let parameters = command.parameters
        let line = hasElements ? elementsLast(arguments, parameters) : arguments
        let options = Set(parameters.filter { $0.kind == "option" }.compactMap(\.long))
        return joined(line, options, isSet: isSet)
    }

    /// Whether the text is a dash and a number, in part.
    static func isNegative(_ text: String) -> Bool {
        text.firstMatch(of: /^-\.?[0-9]/) != nil
    }

    /// - Parameters:
    ///   - options: The options that take a value.
    ///   - isSet: Whether a number on its own is a value.
    private static func joined(
        _ arguments: [String], _ options: Set<String>, isSet: Bool
    ) -> [String] {
        let end = arguments.firstIndex { $0 == "--" || RepeatedOptions.remaining.contains($0) }
        var line: [String] = []
        for word in arguments[..<(end ?? arguments.endIndex)] {
            if !isNegative(word) {
                line.append(word)
            } else if let last = line.last, options.contains(last) {
                line[line.endIndex - 1] = "\(last)=\(word)"
            } else {
                line.append(isSet ? "--string=\(word)" : word)
            }
        }
        return line + arguments[(end ?? arguments.endIndex)...]
    }

    /// Other options may follow the elements: `set k --array a b --store s`.
    private static func elementsLast(
        _ arguments: [String], _ parameters: [NamedCommand.Parameter]
    ) -> [String] {
        let options = Set(parameters.compactMap(\.long) + ["--", "--help", "-h"])
        var (start, isValue) = (arguments.startIndex, false)
        while start < arguments.endIndex {
            let word = arguments[start]
            if !isValue, word == "--" { return arguments }
            if !isValue, RepeatedOptions.remaining.contains(word) { break }
            isValue = !isValue && RepeatedOptions.raw.contains(word)
            start += 1
        }
        guard start < arguments.endIndex else { return arguments }
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
