// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityCore

extension KeyCode {
    /// Reads a code that was given as an argument, or asks for it: other users of a machine can see a
    /// command line, and shells keep it.
    /// - Throws: ``Failure`` that does not repeat the code.
    static func given(_ text: String?, prompt: TerminalText) throws(Failure) -> KeyCode {
        var given = text ?? ""
        if text == nil { given = try Question.line(prompt, otherwise: "no code was given") }
        do throws(KeyringRefusal) { return try KeyCode(given: given) } catch {
            let hint = text == nil ? "" : "; without an argument, the command asks for the code"
            throw Failure(.badInput, error.description + hint)
        }
    }

    /// Says that a secret was given where others can see it.
    func warn(ifGiven text: String?) {
        // A command that calls another one shows nobody the code.
        guard secret != nil, let text, CommandLine.arguments.contains(where: { $0.contains(text) })
        else { return }
        Output.note(
            "The code is a secret, and other users of this machine can see a command's arguments. Leave "
                + "it out next time: the command asks for it.")
    }
}
