// SPDX-License-Identifier: Apache-2.0

/// A line of text that is being typed.
public struct TextField: Hashable, Sendable {
    /// What is asked for.
    public let label: String
    /// What has been typed.
    public private(set) var text: String

    /// Where the typing stands after a key.
    public enum Outcome: Hashable, Sendable {
        case typing, done, cancelled
    }

    /// - Parameters:
    ///   - label: What is asked for.
    ///   - text: What is there to be changed.
    public init(_ label: String, text: String = "") {
        self.label = label
        self.text = text
    }

    /// Enter ends it, Escape gives it up; keys that are no text do nothing.
    public mutating func press(_ key: Key) -> Outcome {
        switch key {
        case .character(let character): text.append(character)
        case .backspace: if !text.isEmpty { text.removeLast() }
        case .enter: return .done
        case .escape, .interrupt: return .cancelled
        case .tab, .up, .down, .left, .right: break
        }
        return .typing
    }

    /// With a cursor at its end.
    public var line: Line { Line(label + ": ", .bold) + Line(text) + Line(" ", .reversed) }
}
