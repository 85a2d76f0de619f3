// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityCore

/// The names of keys for people. Keys that look alike are told apart by their code points: `théme
/// (th\u00e9me)`.
struct KeyNames {
    private let byLook: [String: Set<Key>]

    init(_ keys: some Sequence<Key>) {
        byLook = Dictionary(grouping: keys, by: Self.look).mapValues { Set($0) }
    }

    func shown(_ key: Key) -> String { named(key, JSON.escaped(key.string)) }

    func quoted(_ key: Key) -> String { named(key, JSON.string(key.string).text) }

    private func named(_ key: Key, _ text: String) -> String {
        let others = byLook[Self.look(of: key), default: []].subtracting([key])
        return others.isEmpty ? text : "\(text) (\(Self.codePoints(key)))"
    }

    /// A key that is not among the names, quoted, with those that look like it.
    func absent(_ key: Key) -> String {
        let alike = byLook[Self.look(of: key), default: []].sorted()
            .map { "\(JSON.string($0.string).text) (\(Self.codePoints($0)))" }
        let note = alike.isEmpty ? "" : "; \(alike.joined(separator: ", ")) only looks like it"
        return JSON.string(key.string).text + note
    }

    private static func codePoints(_ key: Key) -> String {
        key.string.escaped { !$0.isASCII || $0.isControl || $0 == " " || $0 == "\\" }
    }

    /// Equal for keys that nobody can tell apart.
    private static func look(of key: Key) -> String {
        guard key.string.utf8.contains(where: { $0 > 127 || $0 <= 32 }) else { return key.string }
        let letters = key.string.precomposedStringWithCompatibilityMapping.unicodeScalars
            .filter { !$0.isControl }.map { String(twins[$0] ?? $0) }.joined()
        return letters.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    /// Cyrillic and Greek letters with the Latin ones that look like them.
    private static let twins = Dictionary(
        uniqueKeysWithValues: zip(
            "аеорсухѕіјһԁԛԝАВЕЅІЈКМНОРСТУХΑΒΕΖΗΙΚΜΝΟΡΤΥΧοιν".unicodeScalars,
            "aeopcyxsijhdqwABESIJKMHOPCTYXABEZHIKMNOPTYXoiv".unicodeScalars))
}
