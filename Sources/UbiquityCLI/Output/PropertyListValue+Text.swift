// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityCore

/// Formats values for people.
extension PropertyListValue {
    /// The name of the type, as in the options of `set` and in the protocol.
    var typeName: String {
        switch self {
        case .string: "string"
        case .boolean: "boolean"
        case .integer, .unsigned: "integer"
        case .real: "real"
        case .date: "date"
        case .data: "data"
        case .array: "array"
        case .dictionary: "dictionary"
        case .sealed: "sealed"
        }
    }

    /// Strings as they are, data in base64, containers on several lines.
    var text: String {
        switch self {
        case .string(let string): string.string
        case .data(let bytes): Data(bytes).base64EncodedString()
        case .array(let values): Self.lines("[", values.map(\.nestedText), "]")
        case .dictionary: Self.lines("{", sortedEntries.map { "\($0): \($1.nestedText)" }, "}")
        default: scalarText
        }
    }

    /// On one line of at most this many columns of a terminal, without anything that moves its
    /// cursor; nil for all of it.
    func line(_ columnsMax: Int?) -> String {
        guard let columnsMax else { return lineText(.max) }
        return Table.clipped(lineText(columnsMax + 1), to: columnsMax)
    }

    private var scalarText: String {
        switch self {
        case .boolean(let boolean): "\(boolean)"
        case .integer(let integer): "\(integer)"
        case .unsigned(let unsigned): "\(unsigned)"
        case .real(let real): "\(real)"
        case .date(let seconds): DateText.text(of: seconds)
        case .sealed(let box): box.description
        default: ""
        }
    }

    private var nestedText: String {
        switch self {
        case .string(let string): Self.quoted(string.string)
        case .data(let bytes): "<\(Data(bytes).base64EncodedString())>"
        default: text
        }
    }

    private var sortedEntries: [(String, PropertyListValue)] {
        guard case .dictionary(let entries) = self else { return [] }
        return entries.sorted { $0.key < $1.key }.map { (Self.quoted($0.key.string), $0.value) }
    }

    private static func lines(_ open: String, _ items: [String], _ close: String) -> String {
        if items.isEmpty { return open + close }
        let indented = items.map { "    " + $0.replacingOccurrences(of: "\n", with: "\n    ") }
        return open + "\n" + indented.joined(separator: ",\n") + "\n" + close
    }

    /// May stop soon after this many characters: formatting a megabyte would be a waste.
    private func lineText(_ enough: Int) -> String {
        switch self {
        case .string(let string): Self.quoted(String(string.string.prefix(enough)))
        case .data(let bytes):
            "<\(bytes.count) bytes> " + Data(bytes.prefix(enough)).base64EncodedString()
        case .array(let values):
            "[" + values.prefix(enough).map { $0.lineText(enough) }.joined(separator: ", ") + "]"
        case .dictionary:
            "{"
                + sortedEntries.prefix(enough).map { "\($0): \($1.lineText(enough))" }
                .joined(separator: ", ") + "}"
        default: scalarText
        }
    }

    private static func quoted(_ string: String) -> String { JSON.string(string).text }
}
