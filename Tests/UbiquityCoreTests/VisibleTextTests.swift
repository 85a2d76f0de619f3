// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

struct VisibleTextTests {
    @Test(arguments: [
        ("\u{0}", "\\u0000"), ("\u{1B}[2J", "\\u001b[2J"), ("\n\r\t", "\\n\\r\\t"),
        ("\u{7F}", "\\u007f"), ("\u{9B}2J", "\\u009b2J"), ("\u{85}", "\\u0085"),
        ("\u{202E}gpj", "\\u202egpj"), ("\u{2066}\u{2069}", "\\u2066\\u2069"),
        ("\u{200B}\u{FEFF}\u{AD}", "\\u200b\\ufeff\\u00ad"), ("\u{2028}", "\\u2028"),
        ("\u{E0041}", "\\udb40\\udc41"),
    ])
    func `characters that control a terminal, or are invisible, are escaped`(
        _ text: String, _ shown: String
    ) {
        #expect("a\(text)b".visible() == "a\(shown)b")
        #expect(text.hasControls)
    }

    @Test func `they are those that Unicode calls so`() {
        for number: UInt32 in 0x7F...0x10FFFF {
            guard let scalar = Unicode.Scalar(number) else { continue }
            let isControl: Bool =
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator: true
                default: false
                }
            if scalar.isControl != isControl { Issue.record("U+\(String(number, radix: 16))") }
        }
    }

    @Test func `what people read stays as it is`() {
        for text in ["", "plain \"\\", "Zoë", "e\u{301}", "京都", "שלום", "👩🏽", "❤\u{FE0F}", "\u{A0}"]
        {
            #expect(text.visible().unicodeScalars.elementsEqual(text.unicodeScalars))
            #expect(!text.hasControls)
        }
        #expect("a\nb\tc\rd".visible(keeping: "\n", "\t") == "a\nb\tc\\rd")
    }

    @Test(arguments: [
        ("\u{430}da", "\u{430}da (\\u0430da)"), ("ad\u{3B1}", "ad\u{3B1} (ad\\u03b1)"),
        ("jose\u{301}", "jose\u{301} (jose\\u0301)"), ("ada\u{180B}", "ada\u{180B} (ada\\u180b)"),
        ("\u{FF41}da", "\u{FF41}da (\\uff41da)"), ("a\u{200B}da", "a\\u200bda"),
    ])
    func `a name that may be taken for another is listed with its characters`(
        _ name: String, _ shown: String
    ) {
        #expect(name.listed.unicodeScalars.elementsEqual(shown.unicodeScalars))
    }

    @Test func `a name of one script is listed as it is`() {
        for name in ["ada (id.example)", "José 2", "Анна 1-2", "田中 Sakura さくら", "ada ❤\u{FE0F}"] {
            #expect(name.listed == name)
        }
    }
}
