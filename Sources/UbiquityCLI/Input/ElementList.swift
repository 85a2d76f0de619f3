// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Parses the elements of an array or a dictionary, as `set --array` and `set --dict` take them: a
/// word is a string, other types are named before each.
enum ElementList {
    /// Stands for no elements, which the argument parser cannot tell from no option.
    static let noElements = "--empty"

    typealias Parse = @Sendable (String) throws -> PropertyListValue

    static let types: [String: Parse] = [
        "--string": { try ValueParser.text($0) }, "--integer": { try ValueParser.integer($0) },
        "--real": { try ValueParser.real($0) }, "--bool": { try ValueParser.boolean($0) },
        "--data": { try ValueParser.data($0) }, "--date": { try ValueParser.date($0) },
        "--plist": { try ValueParser.propertyList($0) },
        "--json-value": { try ValueParser.json($0) },
    ]

    static func array(_ words: [String]) throws -> PropertyListValue {
        var (rest, values) = (elements(words), [PropertyListValue]())
        while let value = try value(&rest) { values.append(value) }
        return .array(values)
    }

    static func dictionary(_ words: [String]) throws -> PropertyListValue {
        var (rest, values) = (elements(words), [ExactString: PropertyListValue]())
        while let key = rest.popFirst() {
            try checkDashes(key)
            guard let value = try value(&rest) else {
                throw Failure(
                    .usage, "the key \"\(key)\" has no value: --dict takes keys and values in turn")
            }
            guard values.updateValue(value, forKey: ExactString(key)) == nil else {
                throw Failure(.usage, "the key \"\(key)\" is given twice")
            }
        }
        return .dictionary(values)
    }

    private static func elements(_ words: [String]) -> ArraySlice<String> {
        words == [noElements] ? [] : words[...]
    }

    private static func value(_ rest: inout ArraySlice<String>) throws -> PropertyListValue? {
        guard let word = rest.popFirst() else { return nil }
        if let parse = types[word] {
            guard let text = rest.popFirst() else {
                throw Failure(.usage, "there is no value after \(word)")
            }
            return try parse(text)
        }
        try checkDashes(word)
        return .string(word)
    }

    private static func checkDashes(_ word: String) throws(Failure) {
        // Not a number below zero, nor a dash alone.
        guard word.firstMatch(of: /^-[-A-Za-z]/) == nil else {
            throw Failure(
                .usage,
                "\(word) is not an element's type; write --string before text that begins with a "
                    + "dash")
        }
    }
}
