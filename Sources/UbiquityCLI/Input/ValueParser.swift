// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore

/// Parses a text of the command line as a value of a given type.
enum ValueParser {
    /// A plain word of the command line: a dash stands for the standard input.
    static func word(_ word: String) throws(Failure) -> PropertyListValue {
        word == "-" ? try text("@-") : .string(word)
    }

    /// The text itself, or for `@FILE` that of the file, without its last line end, which `get` prints
    /// again.
    static func text(_ text: String) throws(Failure) -> PropertyListValue {
        guard text.hasPrefix("@") else { return .string(text) }
        let path = String(text.dropFirst())
        var bytes = try InputFile.read(path)
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        guard let string = String(validating: bytes, as: UTF8.self) else {
            throw Failure(
                .badInput,
                "\(InputFile.name(path)) is not text in UTF-8; use --data @FILE for bytes")
        }
        return .string(string)
    }

    static func integer(_ text: String) throws(Failure) -> PropertyListValue {
        if let integer = Int64(text) { return .integer(integer) }
        if let unsigned = UInt64(text) { return PropertyListValue(unsigned: unsigned) }
        throw wrong(
            text, "not a whole number between -9223372036854775808 and 18446744073709551615")
    }

    static func real(_ text: String) throws(Failure) -> PropertyListValue {
        // Swift also accepts "0x1p3" and "nan(7)", but no leading blanks.
        guard let real = Double(text) else { throw wrong(text, "not a number") }
        let namesInfinity = text.lowercased().contains("inf")
        guard real.isFinite || real.isNaN || namesInfinity else {
            throw wrong(text, "too large for a real number; write inf for infinity")
        }
        return .real(PropertyListValue.canonical(real))
    }

    static func boolean(_ text: String) throws(Failure) -> PropertyListValue {
        switch text.lowercased() {
        case "true", "yes", "1", "on": return .boolean(true)
        case "false", "no", "0", "off": return .boolean(false)
        default: throw wrong(text, "neither true nor false")
        }
    }

    static func data(_ text: String) throws(Failure) -> PropertyListValue {
        if text.hasPrefix("@") {
            return .data([UInt8](try InputFile.read(String(text.dropFirst()))))
        }
        guard let data = Data(base64Encoded: text) else {
            throw wrong(text, "not base64 text; for a file, use @FILE")
        }
        return .data([UInt8](data))
    }

    static func propertyList(_ text: String) throws(Failure) -> PropertyListValue {
        // As the words of `defaults` have it: a value without the elements around it.
        if text.hasPrefix("<") {
            let isWhole = ["<?", "<!", "<plist"].contains(where: text.hasPrefix)
            let bytes = Array((isWhole ? text : "<plist>\(text)</plist>").utf8)
            return try read("the text", "a property list") { () throws(PropertyListError) in
                try PropertyList.decode(bytes)
            }
        }
        let path = text.hasPrefix("@") ? String(text.dropFirst()) : text
        let bytes = [UInt8](try InputFile.read(path))
        return try read(InputFile.name(path), "a property list") { () throws(PropertyListError) in
            try PropertyList.decode(bytes)
        }
    }

    /// Plain JSON: the text itself, or for `@FILE` that of the file.
    static func json(_ text: String) throws(Failure) -> PropertyListValue {
        let path = text.hasPrefix("@") ? String(text.dropFirst()) : nil
        let bytes = try path.map { path throws(Failure) in [UInt8](try InputFile.read(path)) }
        let name = path.map(InputFile.name) ?? "the text"
        return try read(name, "JSON") { () throws(PropertyListError) in
            try JSONValues.value(bytes ?? Array(text.utf8))
        }
    }

    private static func read(
        _ name: String, _ form: String,
        _ decode: () throws(PropertyListError) -> PropertyListValue
    ) throws(Failure) -> PropertyListValue {
        do throws(PropertyListError) { return try decode() } catch {
            guard case .unsupported(let value) = error else {
                throw Failure(.badInput, "\(name) is not \(form): \(error)")
            }
            throw Failure(.badInput, "\(name) cannot be a value: \(value)")
        }
    }

    static func date(_ text: String) throws(Failure) -> PropertyListValue {
        guard let seconds = DateText.seconds(of: text) else {
            throw wrong(text, "not a time in ISO 8601, such as 2026-11-21T10:00:00Z")
        }
        return .date(seconds)
    }

    private static func wrong(_ text: String, _ what: String) -> Failure {
        Failure(.badInput, "\"\(text)\" is \(what)")
    }
}
