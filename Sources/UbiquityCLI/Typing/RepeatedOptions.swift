// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Detects options that are given twice, so that one of them would have no effect.
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
    static let longNames = ["-o": "--output"]

    /// - Parameter arguments: A command line that was parsed without an error.
    static func check(_ arguments: [String]) throws {
        let allowed = (1...2).reduce(allowed) { allowed, words in
            allowed.union(allowedFor[Array(arguments.prefix(words))] ?? [])
        }
        var seen: Set<String> = []
        for argument in LineForm.parts(of: arguments).words where argument.hasPrefix("-") {
            let written = String(argument.prefix { $0 != "=" })
            let name = longNames[written] ?? written
            guard name.hasPrefix("--"), !allowed.contains(name) else { continue }
            guard seen.insert(name).inserted else {
                throw ValidationError("\(name) is given twice. Give it once.")
            }
        }
    }
}
