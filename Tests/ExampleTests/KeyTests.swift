// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import Testing

struct KeyTests {
    private func keys(_ text: String) -> [Key] {
        var reader = KeyReader()
        return reader.keys(in: text.utf8)
    }

    @Test func `letters, arrows and control keys are told apart`() {
        #expect(keys("aé東") == [.character("a"), .character("é"), .character("東")])
        #expect(keys("\u{1B}[A\u{1B}[B\u{1B}OC\u{1B}[D") == [.up, .down, .right, .left])
        #expect(keys("\t\r\u{7F}\u{3}") == [.tab, .enter, .backspace, .interrupt])
    }

    @Test func `an escape alone is a key`() {
        #expect(keys("\u{1B}") == [.escape])
        #expect(keys("\u{1B}q") == [.escape, .character("q")])
    }

    @Test func `a letter that comes in two pieces is one key`() {
        var reader = KeyReader()
        let bytes = Array("東".utf8)
        #expect(reader.keys(in: bytes.prefix(2)) == [])
        #expect(reader.keys(in: bytes.dropFirst(2)) == [.character("東")])
    }

    @Test func `a value that is not a key does no harm`() {
        #expect(keys("\u{1B}[15~\u{1B}[1;5Ca\u{1}") == [.character("a")])
        var reader = KeyReader()
        #expect(reader.keys(in: [0xFF, 0xFE, 0xFD, 0xFC, 0x80]) == [])
        #expect(reader.keys(in: [UInt8(ascii: "q")]) == [.character("q")])
    }

    @Test func `a field takes text until it is done or given up`() {
        var field = TextField("Title", text: "ab")
        for key in [Key.backspace, .character("c"), .left, .tab] {
            #expect(field.press(key) == .typing)
        }
        #expect(field.text == "ac")
        #expect(field.press(.enter) == .done)
        #expect(field.press(.escape) == .cancelled)
    }
}
