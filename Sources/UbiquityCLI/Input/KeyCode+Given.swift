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
        guard let code = KeyCode(given.trimmingCharacters(in: .whitespaces)) else {
            throw Failure(.badInput, unreadable)
        }
        guard !code.isSecretAlone else { throw Failure(.badInput, secretAlone) }
        return code
    }

    static let unreadable =
        "the code cannot be read: a part of it is missing, or was mistyped; quote it in a shell, or give "
        + "none and be asked for it"
}
