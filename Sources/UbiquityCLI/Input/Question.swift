// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The end of a pipe into which Ctrl-C writes while there is a question. Only set while the signal has
/// its usual effect, so that the handler never meets a change.
private nonisolated(unsafe) var interruptsEnd: Int32 = -1

/// A question to the person at the terminal.
enum Question {
    /// Asks, unless the answer was given by --yes. This is the only way in which commands ask.
    /// - Parameter refusal: What to say after a no, in which case nothing must be done.
    /// - Throws: ``Failure``: status 1 for a no, and wrong use if there is no terminal to ask at.
    static func confirm(
        _ question: TerminalText, isGiven yes: Bool, otherwise refusal: String
    ) throws(Failure) {
        if yes { return }
        guard Output.isAskable else {
            throw Failure(
                .usage, "\(question.string) There is no terminal to ask at; give --yes to confirm")
        }
        guard ask(question) else { throw Failure(.no, refusal) }
    }

    /// Reads a line that a person types, or that a script writes.
    /// - Parameters:
    ///   - isSecret: Whether the terminal does not show what is typed.
    ///   - refusal: What to say if there is none.
    /// - Throws: ``Failure``.
    static func line(
        _ prompt: TerminalText, isSecret: Bool = false, otherwise refusal: String
    ) throws(Failure) -> String {
        let isTyped = isatty(STDIN_FILENO) == 1
        var usual = termios()
        let isHidden = isSecret && isTyped && tcgetattr(STDIN_FILENO, &usual) == 0
        if isHidden {
            var hidden = usual
            hidden.c_lflag &= ~tcflag_t(ECHO)
            hidden.c_lflag |= tcflag_t(ECHONL)
            tcsetattr(STDIN_FILENO, TCSADRAIN, &hidden)
        }
        defer { if isHidden { tcsetattr(STDIN_FILENO, TCSADRAIN, &usual) } }
        Output.noteInPlace("\(prompt) ")
        // What a script has written may have been read already, together with the line before.
        guard !isTyped || isAnswered(), let line = readLine() else {
            Output.note("")
            throw Failure(.no, refusal)
        }
        if !isTyped { Output.note("") }
        return line
    }

    /// - Returns: False also for Ctrl-C, so that what was prepared for a yes is undone.
    private static func ask(_ question: TerminalText) -> Bool {
        Output.noteInPlace("\(question) [y/N] ")
        guard isAnswered() else {
            Output.note("")
            return false
        }
        let answer = readLine()?.lowercased() ?? ""
        return ["y", "yes"].contains(answer.filter { !$0.isWhitespace })
    }

    /// Waits for a line, or for Ctrl-C.
    private static func isAnswered() -> Bool {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { return true }
        interruptsEnd = ends[1]
        // A source of Dispatch blocks the signal for good.
        let usual = signal(SIGINT) { _ in
            var byte: UInt8 = 0
            _ = write(interruptsEnd, &byte, 1)
        }
        defer {
            signal(SIGINT, usual)
            ends.forEach { close($0) }
        }
        var files = [
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
            pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0),
        ]
        while poll(&files, 2, -1) < 0, errno == EINTR {}
        return files[1].revents == 0
    }
}
