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

/// Detects options that are given twice, of which one would have no effect.
enum RepeatedOptions {
    /// Options that collect their values.
    static let allowed: Set<String> = [
        "--allowed-origin", "--host-name", "--identity-audience", "--trusted-proxy",
    ]
    /// The same for single commands.
    static let allowedFor: [[String]: Set<String>] = [
        ["account", "code"]: ["--store"], ["pair"]: ["--store"], ["approve"]: ["--store"],
        ["sign-in"]: ["--store"], ["rewind"]: ["--keys"],
    ]
    /// Options whose value may begin with dashes.
    static let raw: Set<String> = ["--string", "--integer", "--real"]
    /// Options that take the rest of the line.
    static let remaining: Set<String> = ["--array", "--dict"]
    static let longNames = ["-o": "--output"]

    /// - Parameter arguments: A command line that was parsed without an error.
    static func check(_ arguments: [String]) throws {
        let allowed = (1...2).reduce(allowed) { allowed, words in
            allowed.union(allowedFor[Array(arguments.prefix(words))] ?? [])
        }
        var seen: Set<String> = []
        var isValue = false
        for argument in arguments {
            if !isValue, argument == "--" || remaining.contains(argument) { break }
            defer { isValue = !isValue && raw.contains(argument) }
            guard !isValue, argument.hasPrefix("-") else { continue }
            let written = String(argument.prefix { $0 != "=" })
            let name = longNames[written] ?? written
            guard name.hasPrefix("--"), !allowed.contains(name) else { continue }
            guard seen.insert(name).inserted else {
                throw ValidationError("\(name) is given twice. Give it once.")
            }
        }
    }
}
