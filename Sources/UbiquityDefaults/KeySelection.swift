// SPDX-License-Identifier: Apache-2.0

internal import Ubiquity
internal import UbiquityCore

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
    var isLatest: Bool { if case .latest = self { true } else { false } }
    var isCounter: Bool { if case .counter = self { true } else { false } }
}
