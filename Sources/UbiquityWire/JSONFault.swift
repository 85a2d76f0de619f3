// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Finds the field of a JSON body that cannot be decoded. The decoder knows the field but does not
/// report it. A body that can be decoded without a field is wrong in that field.
struct JSONFault {
    private enum Step: Hashable {
        case member(String)
        case element(Int)
    }

    /// Limits the bodies that are examined, because each is decoded some dozens of times, on any
    /// thread's stack.
    private static let bytesMax = 16_384
    private static let bracketsMax = 64

    private let root: Any
    private let isReadable: (Data) -> Bool

    /// - Parameter isReadable: Whether a body can be decoded.
    /// - Returns: A sentence without a final full stop, for the author of the body.
    static func sentence(
        for bytes: some Sequence<UInt8>, isReadable: @escaping (Data) -> Bool
    ) -> String {
        let body = Data(bytes)
        let brackets = body.count { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[") }
        guard body.count <= bytesMax, brackets <= bracketsMax else {
            return "the body does not have this request's form in JSON"
        }
        guard let root = try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
        else { return "the body is not JSON" }
        guard root is [String: Any] else { return "the body must be a JSON object" }
        let path = JSONFault(root: root, isReadable: isReadable).path
        guard !path.isEmpty else { return "the body does not have this request's form in JSON" }
        return "\"\(text(of: path))\" has a value that is not allowed there"
    }

    /// The path to the faulty field, as far as a single field is at fault.
    private var path: [Step] {
        var path: [Step] = []
        while let step = culprit(below: path) { path.append(step) }
        return path
    }

    private func culprit(below path: [Step]) -> Step? {
        var candidates = Self.steps(in: Self.node(at: path, in: root))
        guard canBeRead(without: candidates, below: path) else { return nil }
        while candidates.count > 1 {
            let (first, last) = (
                Array(candidates[..<(candidates.count / 2)]),
                Array(candidates[(candidates.count / 2)...])
            )
            if canBeRead(without: first, below: path) {
                candidates = first
            } else if canBeRead(without: last, below: path) {
                candidates = last
            } else {
                return nil
            }
        }
        return candidates.first
    }

    private func canBeRead(without steps: [Step], below path: [Step]) -> Bool {
        let rest = Self.without(Set(steps), below: path[...], in: root)
        return (try? JSONSerialization.data(withJSONObject: rest)).map(isReadable) ?? false
    }

    private static func steps(in node: Any?) -> [Step] {
        switch node {
        case let members as [String: Any]: members.keys.sorted().map(Step.member)
        case let elements as [Any]: elements.indices.map(Step.element)
        default: []
        }
    }

    private static func node(at path: [Step], in root: Any) -> Any? {
        path.reduce(root as Any?) { node, step in
            switch step {
            case .member(let name): (node as? [String: Any])?[name]
            case .element(let index): (node as? [Any])?[index]
            }
        }
    }

    private static func without(
        _ gone: Set<Step>, below path: ArraySlice<Step>, in node: Any
    ) -> Any {
        if var members = node as? [String: Any] {
            guard case .member(let name)? = path.first, let inner = members[name] else {
                return members.filter { !gone.contains(.member($0.key)) }
            }
            members[name] = without(gone, below: path.dropFirst(), in: inner)
            return members
        }
        guard var elements = node as? [Any] else { return node }
        guard case .element(let index)? = path.first else {
            return elements.indices.filter { !gone.contains(.element($0)) }.map { elements[$0] }
        }
        elements[index] = without(gone, below: path.dropFirst(), in: elements[index])
        return elements
    }

    private static func text(of path: [Step]) -> String {
        path.reduce("") { text, step in
            switch step {
            case .member(let name): text.isEmpty ? name : "\(text).\(name)"
            case .element(let index): "\(text)[\(index)]"
            }
        }
    }
}
