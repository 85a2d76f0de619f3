// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityCore

/// Understands what users of macOS's `defaults` type: `read`, `write` and `delete`, with the store in
/// place of the domain, and `domains` or `stores` for the list of stores.
enum DefaultsWords {
    /// - Returns: The line in this program's words, or as it was.
    /// - Throws: ``Failure`` for what this program cannot do.
    static func translated(_ arguments: [String]) throws(Failure) -> [String] {
        if let word = arguments.first, ["domains", "stores"].contains(word) {
            return ["store", "list"] + arguments.dropFirst()
        }
        guard let verb = arguments.first, let own = verbs[verb] else { return arguments }
        let rest = Array(arguments.dropFirst())
        if rest.contains(where: ["--help", "-h", "-help"].contains) { return [own, "--help"] }
        let words = rest.prefix { !$0.hasPrefix("-") || LineForm.isNegative($0) || $0 == "-" }
        let others = Array(rest.dropFirst(words.count))
        let hasStore = others.contains { $0 == "--store" || $0.hasPrefix("--store=") }
        return switch (verb, words.count, hasStore) {
        case ("read", 0, _): ["list"] + others
        case ("read", 1, false) where isDomain(words[0]): ["list", "--store", words[0]] + others
        case ("delete", 1, false) where isDomain(words[0]): ["store", "delete"] + rest
        case ("write", _, _):
            try written(Array(words), others, hasDomain: !hasStore && hasDomain(words, others))
        case (_, 2..., false): [own] + words.dropFirst() + ["--store", words[0]] + others
        default: [own] + rest
        }
    }

    private static let verbs = ["read": "get", "write": "set", "delete": "remove"]

    /// A store's identifier has a point, a key seldom.
    private static func isDomain(_ word: String) -> Bool {
        word.contains(".") && (try? StoreIdentifier(word)) != nil
    }

    private static func hasDomain(_ words: ArraySlice<String>, _ others: [String]) -> Bool {
        switch words.count {
        case 0, 1: false
        case 2: isDomain(words[words.startIndex]) || others.first.map(isType) ?? false
        default: true
        }
    }

    private static func isType(_ word: String) -> Bool {
        types[word] != nil || ElementList.types[word] != nil || LineForm.remaining.contains(word)
    }

    private static func written(
        _ words: [String], _ others: [String], hasDomain: Bool
    ) throws(Failure) -> [String] {
        let store = hasDomain ? ["--store", words[0]] : []
        let own = words.dropFirst(hasDomain ? 1 : 0)
        let key = own.prefix(1)
        // A dash alone is the standard input only in this program's own words.
        let values = try own.dropFirst().map { word throws(Failure) in
            word == "-" ? ["--string", "-"] : try untyped(word)
        }
        return try ["set"] + key + store + values.joined() + typed(others)
    }

    /// A word without a type, in which `defaults` also understands property lists.
    private static func untyped(_ word: String) throws(Failure) -> [String] {
        let first = word.first { !$0.isWhitespace }
        if first == "<" {
            return ["--plist", String(word.drop(while: \.isWhitespace))]
        }
        guard first == "(" || first == "{" else { return [word] }
        throw Failure(
            .usage,
            "\"\(word)\" is in the old text form of property lists, which has no types; write -array "
                + "a -int 1, -dict a -int 1, or XML such as '<array><integer>1</integer></array>', "
                + "and -string before a text")
    }

    private static let types = [
        "-string": "--string", "-int": "--integer", "-integer": "--integer", "-float": "--real",
        "-bool": "--bool", "-boolean": "--bool", "-date": "--date", "-data": "--data",
        "-array": "--array", "-dict": "--dict",
    ]

    private static func typed(_ words: [String]) throws(Failure) -> [String] {
        var (line, rest) = ([String](), words[...])
        while let word = rest.popFirst() {
            if ["-array-add", "-dict-add"].contains(word) {
                throw Failure(
                    .usage,
                    "\(word) is not supported; write the whole value, with \(word.dropLast(4))")
            }
            guard let type = types[word] else {
                line +=
                    line.contains(where: LineForm.remaining.contains) ? try untyped(word) : [word]
                continue
            }
            switch (type, rest.first) {
            case ("--string", let text?) where text.hasPrefix("@"): break
            case ("--string", let text?):
                line += [type, text]
                rest.removeFirst()
            case ("--data", let digits?):
                line += [type, try base64(ofHexadecimal: digits)]
                rest.removeFirst()
            default: line.append(type)
            }
        }
        return line
    }

    private static func base64(ofHexadecimal text: String) throws(Failure) -> String {
        let digits = Array(text.utf8.filter { !" <>".utf8.contains($0) })
        let bytes = stride(from: 0, to: digits.count, by: 2).map { start in
            UInt8(
                String(decoding: digits[start..<min(start + 2, digits.count)], as: UTF8.self),
                radix: 16)
        }
        guard digits.count.isMultiple(of: 2), !bytes.contains(nil) else {
            throw Failure(
                .badInput, "\"\(text)\" is not data in hexadecimal digits, as -data needs")
        }
        return Data(bytes.compactMap(\.self)).base64EncodedString()
    }
}
