// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

// An option that was given must have an effect. One without effect is an error, and nothing is
// done. Flags that only permit something (--yes, --force, --replace, --allow-plain-http) may go
// unused.

/// The names of the options that were given.
func given(_ options: (name: String, isGiven: Bool)...) -> [String] {
    options.filter(\.isGiven).map(\.name)
}

/// - Parameters:
///   - options: The names of given options without effect.
///   - reason: The rest of the sentence, after "has no effect".
/// - Throws: `ValidationError` if there are any.
func refuse(_ options: [String], _ reason: String) throws {
    guard let last = options.last else { return }
    guard options.count > 1 else {
        throw ValidationError("\(last) has no effect \(reason)")
    }
    let names = options.dropLast().joined(separator: ", ") + " and " + last
    throw ValidationError("\(names) have no effect \(reason)")
}

/// For options and arguments that name something: an unset variable of a shell script must not
/// select the default.
/// - Throws: `ValidationError` for an empty text.
@Sendable func notEmpty(_ text: String) throws -> String {
    guard !text.isEmpty else { throw ValidationError("it is empty.") }
    return text
}

extension Option where Value == String? {
    /// A text that is not empty.
    init(
        _ help: String, _ valueName: String, discussion: String = "",
        completion: CompletionKind? = nil
    ) {
        self.init(
            help: ArgumentHelp(help, discussion: discussion, valueName: valueName),
            completion: completion, transform: notEmpty)
    }
}
