// SPDX-License-Identifier: Apache-2.0

/// The lines of a server's configuration file: `name = value`, with comments on lines of their own
/// that begin with `#`. A value is the rest of its line; it has no quotes, escapes or trailing
/// comments.
package struct ConfigurationFile: Hashable, Sendable {
    /// One setting of the file.
    package struct Setting: Hashable, Sendable {
        /// The name of an option, without dashes: lowercase letters, digits and hyphens.
        package var name: String
        /// Not empty, without space around it, and without control characters except tabs.
        package var value: String
        /// Counted from 1.
        package var line: Int
    }

    /// The reason a file cannot be read.
    package struct Fault: Error, Hashable, Sendable {
        package enum Reason: Error, Hashable, Sendable {
            case tooManyBytes
            case tooManyLines
            case notUTF8
            case controlCharacter
            case noEqualsSign
            case noName
            case badName
            case noValue(name: String)
        }

        package var reason: Reason
        /// Counted from 1; nil for the file as a whole.
        package var line: Int?

        package init(reason: Reason, line: Int? = nil) {
            self.reason = reason
            self.line = line
        }
    }

    package static let bytesMax = 65_536
    package static let linesMax = 2_048

    /// In the order of the file.
    package let settings: [Setting]

    /// - Throws: ``Fault`` for the first line that has one.
    package init(_ bytes: [UInt8]) throws(Fault) {
        guard bytes.count <= Self.bytesMax else { throw Fault(reason: .tooManyBytes) }
        // Editors on Windows begin a file with a byte-order mark.
        let text = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes.dropFirst(3) : bytes[...]
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard lines.count <= Self.linesMax else { throw Fault(reason: .tooManyLines) }
        var settings: [Setting] = []
        for (index, line) in lines.enumerated() {
            do throws(Fault.Reason) {
                if let setting = try Self.setting(line, number: index + 1) {
                    settings.append(setting)
                }
            } catch { throw Fault(reason: error, line: index + 1) }
        }
        self.settings = settings
    }

    /// Nil for a comment and for an empty line.
    private static func setting(
        _ line: ArraySlice<UInt8>, number: Int
    ) throws(Fault.Reason) -> Setting? {
        guard let text = String(validating: line, as: UTF8.self) else { throw .notUTF8 }
        let content = trimmed(text[...])
        guard !content.isEmpty, !content.hasPrefix("#") else { return nil }
        guard content.unicodeScalars.allSatisfy(isPrintable) else { throw .controlCharacter }
        guard let sign = content.unicodeScalars.firstIndex(of: "=") else { throw .noEqualsSign }
        let name = trimmed(content[..<sign])
        let value = trimmed(content[content.unicodeScalars.index(after: sign)...])
        guard !name.isEmpty else { throw .noName }
        guard name.utf8.allSatisfy(isOfName), !name.hasPrefix("-") else { throw .badName }
        guard !value.isEmpty else { throw .noValue(name: String(name)) }
        return Setting(name: String(name), value: String(value), line: number)
    }

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\t" || scalar.properties.generalCategory != .control
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
    }

    /// Without spaces, tabs, and the carriage return of Windows' lines, by scalars: a combining mark
    /// does not make a space part of a word.
    private static func trimmed(_ text: Substring) -> Substring {
        let isSpace: (Unicode.Scalar) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\r" }
        var scalars = text.unicodeScalars.drop(while: isSpace)
        while let last = scalars.last, isSpace(last) { scalars.removeLast() }
        return Substring(scalars)
    }
}

extension ConfigurationFile.Fault: CustomStringConvertible {
    package var description: String {
        switch reason {
        case .tooManyBytes: "it has more than \(ConfigurationFile.bytesMax) bytes"
        case .tooManyLines: "it has more than \(ConfigurationFile.linesMax) lines"
        case .notUTF8: "this is not text in UTF-8"
        case .controlCharacter: "the line has a control character"
        case .noEqualsSign: "write `name = value`, or begin a comment with `#`"
        case .noName: "there is no name before the equals sign"
        case .badName: "a name has lowercase letters, digits and hyphens only, such as `log-level`"
        case .noValue(let name):
            "`\(name)` has no value; remove the line, or make it a comment with `#`"
        }
    }
}
