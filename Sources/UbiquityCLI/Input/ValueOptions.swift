// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquityCore

/// The value to set and its type: a plain word is a string, other types have an option each.
struct ValueOptions: ParsableArguments {
    @Argument(
        help: "A string; - reads it from standard input. Each of the other types has an option.")
    var value: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "A string; @FILE reads it from a file, @- from standard input.", valueName: "text"),
        completion: .file())
    var string: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "A whole number, from -9223372036854775808 to 18446744073709551615.",
            valueName: "number"))
    var integer: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("A real number; nan, inf and -inf too.", valueName: "number"))
    var real: String?

    @Option(help: ArgumentHelp("true or false.", valueName: "truth"))
    var bool: String?

    @Option(
        help: ArgumentHelp(
            "Bytes: @FILE, @- for standard input, or base64 text.", valueName: "bytes"),
        completion: .file())
    var data: String?

    @Option(
        help: ArgumentHelp(
            "A time in ISO 8601, such as 2026-11-21T10:00:00Z or 2026-11-21T11:00:00.25+01:00.",
            valueName: "time"))
    var date: String?

    @Option(
        help: ArgumentHelp(
            "A whole property list: @FILE; @- for standard input.", valueName: "file"),
        completion: .file())
    var plist: String?

    @Option(
        help: ArgumentHelp(
            "A value in JSON, such as '{\"a\":[1,2.5,true]}'; @FILE, @- for standard input.",
            valueName: "json"),
        completion: .file())
    var jsonValue: String?

    @Option(
        parsing: .remaining,
        help: ArgumentHelp(
            "An array of strings; --integer, --real, --bool, --data, --date, --plist and "
                + "--json-value give the next element another type.",
            valueName: "element"))
    var array: [String] = []

    @Option(
        parsing: .remaining,
        help: ArgumentHelp(
            "A dictionary: keys and values in turn, with types like an array's.",
            valueName: "key value"))
    var dict: [String] = []

    func validate() throws {
        if array.contains("--dict") || dict.contains("--array") {
            throw ValidationError("Give one value, not several: --array and --dict.")
        }
        switch given.count {
        case 1: return
        case 0:
            throw ValidationError(
                "There is no value: give a string, or an option for another type.")
        default:
            let names = given.map(\.name).joined(separator: " and ")
            throw ValidationError("Give one value, not several: \(names).")
        }
    }

    /// - Throws: ``Failure`` that says why the text is not a value of the type.
    func parsed() throws -> PropertyListValue {
        guard let given = given.first else { throw Failure(.usage, "there is no value") }
        return try given.parse()
    }

    private typealias Given = (name: String, parse: () throws -> PropertyListValue)

    private var given: [Given] {
        let texts = [
            ("--string", string), ("--integer", integer), ("--real", real), ("--bool", bool),
            ("--data", data), ("--date", date), ("--plist", plist), ("--json-value", jsonValue),
        ]
        var given: [Given] = value.map { word in [("VALUE", { try ValueParser.word(word) })] } ?? []
        for case (let name, let text?) in texts {
            guard let parse = ElementList.types[name] else { continue }
            given.append((name, { try parse(text) }))
        }
        if !array.isEmpty { given.append(("--array", { try ElementList.array(array) })) }
        if !dict.isEmpty { given.append(("--dict", { try ElementList.dictionary(dict) })) }
        return given
    }
}
