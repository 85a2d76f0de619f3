// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The arguments and variables that the system gives the program as bytes. Swift makes text of them, and
/// silently replaces what is not UTF-8 by U+FFFD.
enum GivenText {
    /// - Throws: ``Failure`` for the first argument or variable that is not UTF-8, with its place.
    static func check() throws(Failure) {
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = CommandLine.unsafeArgv[index] else { break }
            try check(UnsafePointer(argument), "argument \(index)")
        }
        for name in ProcessInfo.processInfo.environment.keys where isRead(name) {
            if let value = getenv(name) { try check(UnsafePointer(value), name) }
        }
    }

    /// Whether the program or its HTTP client reads the variable as text. Others may have any bytes.
    private static func isRead(_ name: String) -> Bool {
        ["UBIQUITY_", "XDG_", "SSL_CERT_"].contains(where: name.hasPrefix)
            || name == "HOME" || name.lowercased().hasSuffix("_proxy")
    }

    /// - Parameter place: Of the text, for people. Its content may be a secret.
    static func check(_ text: UnsafePointer<CChar>, _ place: String) throws(Failure) {
        let bytes = UnsafeBufferPointer(start: text, count: strlen(text))
            .map(UInt8.init(bitPattern:))
        guard let index = firstInvalid(of: bytes) else { return }
        throw Failure(
            .badInput,
            "\(place) is not text in UTF-8: its byte \(index + 1) is \(hexadecimal(bytes[index])); "
                + "convert it with `iconv`, or use --data @FILE for bytes")
    }

    /// The index of the first byte that does not belong to a character; nil if all do.
    private static func firstInvalid(of bytes: [UInt8]) -> Int? {
        if String(validating: bytes, as: UTF8.self) != nil { return nil }
        var (decoder, rest, index) = (UTF8(), bytes.makeIterator(), 0)
        while case .scalarValue(let scalar) = decoder.decode(&rest) {
            index += UTF8.width(scalar)
        }
        return index
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        "0x" + String(byte, radix: 16, uppercase: true)
    }
}
