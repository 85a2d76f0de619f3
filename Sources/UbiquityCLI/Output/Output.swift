// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityServer

/// Writes the program's output: results to the standard output, everything else to the standard
/// error.
enum Output {
    /// Call this before anything else opens a file or prints.
    static func prepare() {
        // A reader that stops early (`ubiquity list | head -1`) ends the program, and is not an error.
        signal(SIGPIPE, SIG_IGN)
        reserveStandardFiles()
        widenHelp()
    }

    /// Takes the numbers of standard files that are closed. A database that was opened under one of
    /// them would be written to by the log. Reading and writing there fails, as it would without.
    private static func reserveStandardFiles() {
        for file in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(file, F_GETFD) < 0 {
            _ = open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// The argument parser traps where its help has no column beside the options' names.
    private static func widenHelp() {
        let given = ProcessInfo.processInfo.environment["COLUMNS"].flatMap { Int($0) }
        guard let width = given ?? columns, width < helpColumnsMin else { return }
        setenv("COLUMNS", "\(helpColumnsMin)", 1)
    }

    private static let helpColumnsMin = 40

    /// Prints a result and a line break at once: a reader of a pipe must not wait.
    static func print(_ text: TerminalText) { send(Array((text.string + "\n").utf8)) }

    /// JSON text has no control characters.
    static func print(_ json: JSON, isExact: Bool = false) {
        send(Array((json.text(isExact: isExact) + "\n").utf8))
    }

    /// Prints a line for whoever started a program that goes on, also if nobody can read it.
    static func announce(_ line: TerminalText) {
        let code = writeAll(Array((line.string + "\n").utf8), to: STDOUT_FILENO)
        guard let code, code != EPIPE else { return }
        note("ubiquity: the output cannot be written: \(String(cString: strerror(code)))")
    }

    /// Writes bytes unchanged, except to a terminal, where they become lines of text.
    static func write(_ bytes: [UInt8]) {
        guard isTerminal else { return send(bytes) }
        send(Array(TerminalText(lines: String(decoding: bytes, as: UTF8.self)).string.utf8))
    }

    private static func send(_ bytes: [UInt8]) {
        guard let code = writeAll(bytes, to: STDOUT_FILENO) else { return }
        if code == EPIPE { exit(0) }
        note("ubiquity: the output cannot be written: \(String(cString: strerror(code)))")
        end(.inputOutput)
    }

    /// Prints a line that is not a result. Failures are ignored.
    static func note(_ line: TerminalText) {
        noteInPlace((Progress.isShown ? "\r\u{1B}[K" : "") + line + "\n")
    }

    /// Prints without a line break, for progress.
    static func noteInPlace(_ text: TerminalText) {
        _ = writeAll(Array(text.string.utf8), to: STDERR_FILENO)
    }

    static func end(_ status: Failure.Status) -> Never { exit(status.rawValue) }
}

extension Output {
    static let isTerminal = isatty(STDOUT_FILENO) == 1
    static let isErrorTerminal = isatty(STDERR_FILENO) == 1
    /// Whether a person can see a question and answer it.
    static let isAskable = isErrorTerminal && isatty(STDIN_FILENO) == 1

    /// Whether to use colour: on terminals only, and not if the user has disabled it.
    static let hasColour: Bool = {
        let environment = ProcessInfo.processInfo.environment
        return isTerminal && (environment["NO_COLOR"] ?? "").isEmpty
            && environment["TERM"] != "dumb"
    }()

    enum Style: String {
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
    }

    static func styled(_ text: TerminalText, _ style: Style) -> TerminalText {
        hasColour ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// The columns of the terminal; nil if the output is not one.
    static var columns: Int? { columns(of: STDOUT_FILENO) }

    /// The columns of the terminal for everything else; nil if there is none.
    static var errorColumns: Int? { columns(of: STDERR_FILENO) }

    private static func columns(of file: Int32) -> Int? {
        var size = winsize()
        guard ioctl(file, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Whether the terminal shows more than ASCII.
    static let isUnicode = isUnicode(in: ProcessInfo.processInfo.environment)

    /// As the C library has it: the first of these variables that is set counts.
    static func isUnicode(in environment: [String: String]) -> Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }
            .first { !$0.isEmpty }
        let charset = (locale ?? "").lowercased()
        return charset.contains("utf-8") || charset.contains("utf8")
    }
}
