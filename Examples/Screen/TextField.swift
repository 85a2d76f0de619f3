// SPDX-License-Identifier: Apache-2.0

/// A line of text that is being typed.
public struct TextField: Hashable, Sendable {
    public var label: String
    public private(set) var text: String

    public enum Outcome: Hashable, Sendable {
        case typing, done, cancelled
    }

    public init(_ label: String, text: String = "") {
        self.label = label
        self.text = text
    }

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

    public var line: Line { Line(label + ": ", .bold) + Line(text) + Line(" ", .reversed) }
}
