// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

// Whoever gives an option expects it to count: one that does not count is an error, and nothing is
// done. Flags that only permit something (--yes, --force, --replace, --allow-plain-http) may go unused.

/// The names of those options that a command line gives.
func given(_ options: (name: String, isGiven: Bool)...) -> [String] {
    options.filter(\.isGiven).map(\.name)
}

/// - Parameters:
///   - options: Names of given options that do not count.
///   - reason: The rest of the sentence, after "does not count".
/// - Throws: `ValidationError` if there are any.
func refuse(_ options: [String], _ reason: String) throws {
    guard let last = options.last else { return }
    guard options.count > 1 else {
        throw ValidationError("\(last) does not count \(reason)")
    }
    let names = options.dropLast().joined(separator: ", ") + " and " + last
    throw ValidationError("\(names) do not count \(reason)")
}

/// For options and arguments that name something: an unset variable of a shell script must not mean
/// the default.
/// - Throws: `ValidationError` for an empty text.
@Sendable func notEmpty(_ text: String) throws -> String {
    guard !text.isEmpty else { throw ValidationError("it is empty.") }
    return text
}

/// Options that are given twice, of which one would not count.
enum RepeatedOptions {
    /// They collect what they are given.
    static let allowed: Set<String> = ["--host-name", "--identity-audience", "--trusted-proxy"]
    /// The same, of one command.
    static let allowedFor: [[String]: Set<String>] = [["account", "code"]: ["--store"]]
    /// Their value may begin with dashes.
    static let raw: Set<String> = ["--string", "--integer", "--real"]
    static let longNames = ["-o": "--output"]

    /// - Parameter arguments: A command line that was parsed without an error.
    static func check(_ arguments: [String]) throws {
        let allowed = allowed.union(allowedFor[Array(arguments.prefix(2))] ?? [])
        var seen: Set<String> = []
        var isValue = false
        for argument in arguments.prefix(while: { $0 != "--" }) {
            defer { isValue = !isValue && raw.contains(argument) }
            guard !isValue, argument.hasPrefix("-") else { continue }
            let written = String(argument.prefix { $0 != "=" })
            let name = longNames[written] ?? written
            guard name.hasPrefix("--"), !allowed.contains(name) else { continue }
            guard seen.insert(name).inserted else {
                throw ValidationError("\(name) is given twice, and only one can count.")
            }
        }
    }
}
