// SPDX-License-Identifier: Apache-2.0

/// A line of text that is being typed.
public struct TextField: Hashable, Sendable {
    /// The name of the text, which is shown before it.
    public let label: String
    /// The text typed so far.
    public private(set) var text: String

    /// The state of the typing after a key.
    public enum Outcome: Hashable, Sendable {
        case typing, done, cancelled
    }

    /// - Parameters:
    ///   - label: The name of the text.
    ///   - text: The text to begin with.
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

    /// The label and the text, with a cursor at the end.
    public var line: Line { Line(label + ": ", .bold) + Line(text) + Line(" ", .reversed) }
}
