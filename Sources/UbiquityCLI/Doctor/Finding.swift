// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// The result of a check: a sentence that says what to do if something is wrong.
struct Finding: Equatable {
    enum Verdict: String {
        case ok
        /// Nothing is broken, but it may become so, or cause surprise.
        case note
        case problem
    }

    /// A name for programs and for the beginning of the line.
    var check: String
    var verdict: Verdict
    private(set) var sentence: String

    /// - Parameter sentence: Made a single line, whatever SQLite put into it.
    init(check: String, verdict: Verdict, sentence: String) {
        self.check = check
        self.verdict = verdict
        self.sentence = sentence.replacing("*** in database main ***\n", with: "")
            .replacing("\n", with: "; ")
    }

    static func ok(_ check: String, _ sentence: String) -> Finding {
        Finding(check: check, verdict: .ok, sentence: sentence)
    }

    static func note(_ check: String, _ sentence: String) -> Finding {
        Finding(check: check, verdict: .note, sentence: sentence)
    }

    static func problem(_ check: String, _ sentence: String) -> Finding {
        Finding(check: check, verdict: .problem, sentence: sentence)
    }

    /// Nil for a file system of this machine.
    init?(_ check: String, _ fileSystem: FileSystemKind, of folder: String) {
        switch fileSystem {
        case .local: return nil
        case .network(let name):
            self = .problem(
                check,
                "The folder \(folder) is on a network file system (\(name)), where values that were "
                    + "saved can get lost; move it to a disk of this machine.")
        case .unknown(let name):
            self = .note(
                check,
                "The folder \(folder) is on a file system of the type \(name). If other machines, or "
                    + "another mount, have it too, values that were saved can get lost.")
        }
    }

    /// The sentence above all findings.
    static func summary(_ findings: [Finding]) -> String {
        func count(_ verdict: Verdict) -> Int { findings.count { $0.verdict == verdict } }
        let (problems, notes) = (count(.problem), count(.note))
        if problems == 0, notes == 0 { return "Everything is in order." }
        let found = [(problems, "problem"), (notes, "note")].filter { $0.0 > 0 }
            .map { Phrase.counted($0, $1) }.joined(separator: " and ")
        return (problems == 0 ? "Nothing is broken; " : "Found ") + found + "."
    }

    var json: JSON {
        [
            "check": .string(check), "verdict": .string(verdict.rawValue),
            "sentence": .string(sentence),
        ]
    }
}
