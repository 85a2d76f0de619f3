// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquityCore

/// The value to set and its type: a plain word is a string, other types have an option each.
struct ValueOptions: ParsableArguments {
    @Argument(help: "A string. Each of the other types has an option.")
    var value: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("A string.", valueName: "text"))
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
            "Bytes: @FILE, @- for standard input, or base64 text.", valueName: "bytes"))
    var data: String?

    @Option(
        help: ArgumentHelp(
            "A time in ISO 8601, such as 2026-11-21T10:00:00Z or 2026-11-21T11:00:00.25+01:00.",
            valueName: "time"))
    var date: String?

    @Option(
        help: ArgumentHelp(
            "A whole property list: @FILE; @- for standard input.", valueName: "file"))
    var plist: String?

    func validate() throws {
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
        return try given.parse(given.text)
    }

    private typealias Given = (
        name: String, text: String, parse: (String) throws -> PropertyListValue
    )

    private var given: [Given] {
        let options: [(String, String?, (String) throws -> PropertyListValue)] = [
            ("VALUE", value, { .string($0) }), ("--string", string, { .string($0) }),
            ("--integer", integer, ValueParser.integer), ("--real", real, ValueParser.real),
            ("--bool", bool, ValueParser.boolean), ("--data", data, ValueParser.data),
            ("--date", date, ValueParser.date), ("--plist", plist, ValueParser.propertyList),
        ]
        return options.compactMap { name, text, parse in text.map { (name, $0, parse) } }
    }
}
