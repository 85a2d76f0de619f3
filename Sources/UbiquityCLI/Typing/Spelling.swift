// SPDX-License-Identifier: Apache-2.0

/// Finds the word that somebody meant.
enum Spelling {
    /// A word that was meant by another tool's, or by the beginning or a misspelling of its own.
    /// - Parameters:
    ///   - word: Of any length; a long one is like no other.
    ///   - familiar: What words of other tools mean here, the likeliest first: one of `words`, and
    ///     perhaps more after a space.
    /// - Returns: Nil if none is near.
    static func nearest(
        to word: String, among words: [String], familiar: [String: [String]] = [:]
    ) -> String? {
        let word = word.lowercased()
        guard word.count <= charactersMax else { return nil }
        let known = familiar[word]?.first { known in
            words.contains { $0 == known.prefix { $0 != " " } }
        }
        if let known { return known }
        let begun = words.filter { word.count > 1 && $0.lowercased().hasPrefix(word) }
        if let begun = begun.min(by: { ($0.count, $0) < ($1.count, $1) }) { return begun }
        let near = words.map { (distance: distance(word, $0.lowercased()), word: $0) }
            .filter { $0.distance <= max(1, min(word.count, $0.word.count) / 3) }
        return near.min { $0 < $1 }?.word
    }

    private static let charactersMax = 64

    /// The number of characters to insert, remove, replace or swap with their neighbour.
    static func distance(_ a: String, _ b: String) -> Int {
        let (a, b) = (Array(a), Array(b))
        var (last, row) = ([Int](), Array(0...b.count))
        for i in a.indices {
            var next = [i + 1]
            for j in b.indices {
                var least = min(
                    next[j] + 1, row[j + 1] + 1, row[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                    least = min(least, last[j - 1] + 1)
                }
                next.append(least)
            }
            (last, row) = (row, next)
        }
        return row[b.count]
    }
}

extension Spelling {
    /// Commands that other tools have under these names.
    static let commands: [String: [String]] = [
        "login": ["sign-in"], "signin": ["sign-in"], "auth": ["sign-in"], "join": ["sign-in"],
        "logout": ["sign-out"], "signout": ["sign-out"], "ls": ["list"], "dir": ["list"],
        "all": ["list"], "show": ["get", "list"], "cat": ["get"],
        "read": ["get"], "put": ["set"], "write": ["set"], "add": ["create", "register", "set"],
        "new": ["create", "register"], "rm": ["remove", "delete", "revoke"],
        "del": ["remove", "delete", "revoke"], "delete": ["remove", "revoke"],
        "remove": ["delete", "revoke"], "unset": ["remove"], "kick": ["revoke"],
        "mv": ["rename"], "tail": ["watch"], "follow": ["watch"], "subscribe": ["watch"],
        "monitor": ["watch"], "log": ["history"], "revert": ["undo", "rewind"],
        "rollback": ["rewind"], "reset": ["rewind"], "start": ["serve"], "server": ["serve"],
        "run": ["serve"], "daemon": ["serve"], "push": ["sync"], "pull": ["sync"],
        "fetch": ["sync"], "refresh": ["sync"], "info": ["status"], "state": ["status"],
        "whoami": ["status"], "check": ["doctor"], "diagnose": ["doctor"], "dump": ["export"],
        "save": ["export"], "load": ["import"], "user": ["account"],
        "users": ["account list"], "accounts": ["account list"],
        "devices": ["device list"], "deliveries": ["delivery"], "apps": ["app list"],
        "stores": ["store list"], "domains": ["store list"], "db": ["database"],
        "invite": ["pair"], "quota": ["limits"],
    ]

    /// Options that other tools have under these names.
    static let options: [String: [String]] = [
        "--float": ["--real"], "--double": ["--real"], "--number": ["--integer", "--limit"],
        "--boolean": ["--bool"], "--time": ["--date", "--to", "--since"], "--text": ["--string"],
        "--bytes": ["--data"], "--base64": ["--data"], "--list": ["--array"],
        "--dictionary": ["--dict"], "--map": ["--dict"], "--object": ["--dict"],
        "--offline": ["--local"], "--force": ["--replace", "--yes"], "--domain": ["--store"],
        "--identifier": ["--store"], "--name": ["--device-name"], "--url": ["--server"],
        "--folder": ["--home", "--data"], "--dir": ["--home", "--data"],
        "--out": ["--output"], "--file": ["--output", "--plist"], "--wait": ["--timeout"],
        "--follow": ["--initial"], "--lossless": ["--exact"], "--address": ["--host"],
        "--max": ["--limit", "--count"], "--only": ["--keys"],
    ]
}
