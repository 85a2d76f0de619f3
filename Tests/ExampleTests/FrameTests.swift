// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import Testing

struct FrameTests {
    @Test func `a line that is too long is cut with an ellipsis, and a short one filled`() {
        let frame = Frame(["bookmarks", "a"], columns: 5)
        #expect(frame.lines.map(\.text) == ["book…", "a    "])
        #expect(frame.text == "book…\na")
    }

    @Test func `what takes two columns is never cut in half`() {
        #expect(Frame(["東京都"], columns: 4).lines.map(\.text) == ["東… "])
        #expect(Frame(["東京"], columns: 4).lines.map(\.text) == ["東京"])
    }

    @Test func `there are as many rows as requested`() {
        #expect(Frame(["1", "2", "3"], columns: 1, rows: 2).text == "1\n2")
        #expect(Frame(["1"], columns: 1, rows: 3).rows == 3)
        #expect(Frame(["1"], columns: -1, rows: -1).lines.isEmpty)
    }

    @Test func `frames stand beside each other, whatever their heights`() {
        let left = Frame(["a", "b"], columns: 2)
        let right = Frame(["c"], columns: 2)
        #expect(left.beside(right).text == "a │c\nb │")
        #expect(right.beside(left).text == "c │a\n  │b")
        #expect(left.above(right).text == "a\nb\nc")
    }

    @Test func `styles become what a terminal understands`() {
        let frame = Frame([Line("a", Style(.red))], columns: 2, ground: Style(on: .rgb(1, 2, 3)))
        let red = "\u{1B}[0;31;48;2;1;2;3ma"
        let ground = "\u{1B}[0;48;2;1;2;3m "
        #expect(
            String(decoding: frame.bytes, as: UTF8.self)
                == "\u{1B}[H" + red + ground + "\u{1B}[0m\u{1B}[K\u{1B}[J")
    }

    @Test func `text from elsewhere does not control the terminal`() {
        let frame = Frame([Line("a\u{1B}[2Jb\r\n\u{202E}c")], columns: 12)
        #expect(frame.text == "a·[2Jb···c")
    }
}
