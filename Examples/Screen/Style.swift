// SPDX-License-Identifier: Apache-2.0

/// A colour that a terminal can show.
public enum Color: Hashable, Sendable {
    case red, green, yellow, blue, magenta, cyan
    case rgb(UInt8, UInt8, UInt8)

    /// The part of an escape sequence after `3` (the text's colour) or `4` (the background's).
    var code: String {
        switch self {
        case .red: "1"
        case .green: "2"
        case .yellow: "3"
        case .blue: "4"
        case .magenta: "5"
        case .cyan: "6"
        case .rgb(let red, let green, let blue): "8;2;\(red);\(green);\(blue)"
        }
    }
}

/// The look of text.
public struct Style: Hashable, Sendable {
    /// Nil: as the terminal has it.
    public var foreground: Color?
    /// Nil: as the terminal has it.
    public var background: Color?
    private var isBold = false
    private var isDim = false
    private var isReversed = false

    /// Neither bold nor dim. Nil: as the terminal has it.
    public init(_ foreground: Color? = nil, on background: Color? = nil) {
        self.foreground = foreground
        self.background = background
    }

    /// As the terminal has it.
    public static let plain = Style()

    /// Heavy.
    public static let bold = Style(isBold: true)
    /// For what matters less.
    public static let dim = Style(isDim: true)
    /// Text and ground in each other's colour.
    public static let reversed = Style(isReversed: true)

    private init(isBold: Bool = false, isDim: Bool = false, isReversed: Bool = false) {
        self.isBold = isBold
        self.isDim = isDim
        self.isReversed = isReversed
    }

    /// On this ground, unless it has one of its own.
    func over(_ ground: Style) -> Style {
        var style = self
        style.foreground = foreground ?? ground.foreground
        style.background = background ?? ground.background
        return style
    }

    /// The escape sequence after which a terminal writes in this style, whatever came before.
    var escape: String {
        var codes = ["0"]
        if isBold { codes.append("1") }
        if isDim { codes.append("2") }
        if isReversed { codes.append("7") }
        if let foreground { codes.append("3" + foreground.code) }
        if let background { codes.append("4" + background.code) }
        return "\u{1B}[" + codes.joined(separator: ";") + "m"
    }
}
