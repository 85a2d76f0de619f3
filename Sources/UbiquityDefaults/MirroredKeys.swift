// SPDX-License-Identifier: Apache-2.0

public import Ubiquity
internal import UbiquityCore

/// One or more keys that a ``DefaultsMirror`` keeps equal, and their conflict policy.
/// <!-- Snippets/Preferences.swift: policies -->
/// ```swift
/// func openGame() throws -> DefaultsMirror {
///     try DefaultsMirror(
///         .suite("com.example.game"),
///         keys: [
///             "player",
///             .key("level", .maximum),
///             .key("bestTime", .minimum),
///             .key("games", .counter),
///             .key("badges", .unionOfArrays),
///             .prefix("progress.", .unionOfDictionaries),
///             .key("notes", .custom(joined)),
///         ])
/// }
///
/// @Sendable
/// func joined(_ earlier: ConflictingValue, _ later: ConflictingValue) -> Any {
///     guard let a = earlier.value as? String, let b = later.value as? String else {
///         return later.value
///     }
///     return a + "\n" + b
/// }
/// ```
///
/// Keys of the system, such as those that begin with `Apple` or `NS`, are never mirrored.
public struct MirroredKeys: Sendable, ExpressibleByStringLiteral {
    enum Pattern: Sendable {
        case name(String)
        case prefix(String)
        case matching(@Sendable (String) -> Bool)
    }

    let pattern: Pattern
    let policy: ConflictPolicy

    /// One key, whose latest write wins.
    public init(stringLiteral name: String) { self = .key(name) }

    /// One key.
    public static func key(_ name: String, _ policy: ConflictPolicy = .latest) -> MirroredKeys {
        MirroredKeys(pattern: .name(name), policy: policy)
    }

    /// A typed key, with the policy that it declares.
    public static func key(_ key: UbiquityKey<some Codable & Sendable>) -> MirroredKeys {
        MirroredKeys(pattern: .name(key.name), policy: key.policy)
    }

    /// All keys with this prefix. An empty prefix is refused, because it would match all keys by
    /// accident.
    public static func prefix(
        _ beginning: String, _ policy: ConflictPolicy = .latest
    ) -> MirroredKeys {
        MirroredKeys(pattern: .prefix(beginning), policy: policy)
    }

    /// All keys for which the closure returns true. It must always give the same result for a key.
    /// It is called often, on a queue of the mirror, and must be fast.
    public static func matching(
        _ policy: ConflictPolicy = .latest, _ isMirrored: @escaping @Sendable (String) -> Bool
    ) -> MirroredKeys {
        MirroredKeys(pattern: .matching(isMirrored), policy: policy)
    }

    private init(pattern: Pattern, policy: ConflictPolicy) {
        self.pattern = pattern
        self.policy = policy
    }
}

extension MirroredKeys.Pattern {
    func covers(_ name: String) -> Bool {
        switch self {
        case .name(let own): own == name
        case .prefix(let beginning): name.hasPrefix(beginning)
        case .matching(let isMirrored): isMirrored(name)
        }
    }

    /// The reason it cannot be mirrored, as a sentence; nil if it can.
    var refusal: String? {
        switch self {
        case .name(let name): MirrorableNames.refusal(of: name).map { "\"\(name)\": \($0)" }
        case .prefix(""): "an empty prefix would mirror all keys"
        case .prefix, .matching: nil
        }
    }
}

/// The keys of one mirror.
struct KeySelection: Sendable {
    /// By name. These take precedence.
    let names: [String: ConflictPolicy]
    /// In the order given.
    private let patterns: [MirroredKeys]

    /// - Throws: `UbiquityError` for keys that cannot be mirrored, and for an empty list.
    init(_ keys: [MirroredKeys]) throws {
        var names: [String: ConflictPolicy] = [:]
        var patterns: [MirroredKeys] = []
        for key in keys {
            if let refusal = key.pattern.refusal { throw UbiquityError(.invalid, refusal) }
            if case .name(let name) = key.pattern {
                names[name] = key.policy
            } else {
                patterns.append(key)
            }
        }
        guard !keys.isEmpty else { throw UbiquityError(.invalid, "a mirror needs keys") }
        (self.names, self.patterns) = (names, patterns)
    }

    /// The conflict policy of a key; nil if it is not mirrored.
    func policy(of name: String) -> ConflictPolicy? {
        if let policy = names[name] { return policy }
        guard let pattern = patterns.first(where: { $0.pattern.covers(name) }) else { return nil }
        return MirrorableNames.refusal(of: name) == nil ? pattern.policy : nil
    }

    /// A key that both have, as far as can be told without trying all possible keys.
    func overlap(with other: KeySelection) -> String? {
        names.keys.first { other.policy(of: $0) != nil }
            ?? other.names.keys.first { policy(of: $0) != nil }
            ?? prefixes.first { a in
                other.prefixes.contains { $0.hasPrefix(a) || a.hasPrefix($0) }
            }
    }

    private var prefixes: [String] {
        patterns.compactMap { if case .prefix(let text) = $0.pattern { text } else { nil } }
    }
}

extension ConflictPolicy {
    var isCounter: Bool { if case .counter = self { true } else { false } }
}
