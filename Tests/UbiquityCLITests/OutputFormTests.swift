// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Synchronization
import Testing
import Ubiquity
import UbiquityCore

@testable import UbiquityCLI

struct OutputFormTests {
    @Test func `the types of numbers stay apart in JSON`() {
        let values: [PropertyListValue] = [.integer(1), .real(1), .boolean(true), .date(1)]
        let texts = values.map { JSON.value($0).text(isExact: true) }
        #expect(Set(texts).count == 4)
        #expect(texts[0] == #"{"integer":"1"}"#)
    }

    /// A promise to scripts: docs/COMMAND-LINE.md.
    @Test(
        arguments: [
            (.string("a\"\n"), #""a\"\n""#), (.boolean(true), "true"), (.integer(-5), "-5"),
            (.integer(.min), "-9223372036854775808"), (.unsigned(.max), "18446744073709551615"),
            (.real(1), "1.0"), (.real(0.1), "0.1"), (.real(1e300), "1e+300"),
            (.real(.nan), #""NaN""#), (.real(-.infinity), #""-Infinity""#),
            (.date(816_948_000.25), #""2026-11-21T10:00:00.25Z""#),
            (.data([0x68, 0x69]), #""aGk=""#),
            (.array([.integer(1), .string("b")]), #"[1,"b"]"#),
            (.dictionary(["b": .boolean(false), "a": .array([])]), #"{"a":[],"b":false}"#),
        ] as [(PropertyListValue, String)])
    func `JSON has numbers, ISO dates, base64, plain arrays and objects`(
        _ value: PropertyListValue, _ text: String
    ) {
        #expect(JSON.value(value).text == text)
        #expect(JSON.object([("v", .value(value))]).text == "{\"v\":\(text)}")
    }

    @Test func `a JSON string holds no control character as it is`() {
        #expect(JSON.string("a\"\\\n\u{1B}").text == #""a\"\\\n\u001b""#)
    }

    @Test func `a string is printed as it is, and quoted inside a container`() {
        #expect(PropertyListValue.string("a\nb").text == "a\nb")
        #expect(PropertyListValue.array([.string("a")]).text == "[\n    \"a\"\n]")
        #expect(PropertyListValue.dictionary([:]).text == "{}")
    }

    @Test func `a sealed value is called so, with its size, and exact in the exact form`() {
        let sealed = PropertyListValue.sealed(SealedBox(generation: 2, bytes: [1, 2, 3]))
        #expect(sealed.text == "sealed, 3 bytes" && sealed.line(80) == "sealed, 3 bytes")
        #expect(sealed.typeName == "sealed")
        #expect(JSON.value(sealed).text == #""sealed, 3 bytes""#)
        #expect(
            JSON.value(sealed).text(isExact: true) == #"{"sealed":{"generation":2,"box":"AQID"}}"#)
    }

    @Test func `progress has a rate and an estimate once there is something to measure`() {
        let step = ProgressStep("Copying", 12_000_000, of: 26_000_000)
        #expect(step.text(after: 0.4) == "Copying: 46 %, 12 MB of 26 MB")
        #expect(
            step.text(after: 4)
                == "Copying: 46 %, 12 MB of 26 MB, 3.0 MB/s, about 5 s left")
        #expect(
            ProgressStep("Reading", 12_000, .rows).text(after: 2)
                == "Reading: 12,000 rows, 6,000 rows/s")
        #expect(ProgressStep("Checking").text(after: 0.4) == "Checking")
        #expect(ProgressStep("Checking").text(after: 200) == "Checking: 3 min")
        #expect(
            ProgressStep("Importing", 0, of: 10, .keys).text(after: 3)
                == "Importing: 0 %, 0 keys of 10 keys, 3 s")
        #expect(
            ProgressStep("Copying", 12, of: 10, .rows).text(after: 0)
                == "Copying: 100 %, 12 rows of 10 rows")
        #expect(ProgressStep("Copying", 5, of: 0).text(after: 0) == "Copying: 5 bytes")
        #expect(
            ProgressStep("Copying", 1, of: .max).text(after: 9e9).hasSuffix("about years left"))
    }

    @Test func `work within other work counts towards its line`() {
        let (line, now) = (ProgressLine(), ContinuousClock.now)
        line.set(ProgressStep("Importing", 20, of: 100, .keys), at: now)
        line.add(ProgressStep("Sending", 30, of: 40, .keys))
        line.add(ProgressStep("Fetching"))
        line.add(ProgressStep("Copying", 1_000, of: 1_000))
        #expect(
            line.text(at: now + .seconds(2))
                == "Importing: 50 %, 50 keys of 100 keys, 25 keys/s, about 2 s left")
        line.set(ProgressStep("Importing", 60, of: 100, .keys), at: now + .seconds(2))
        #expect(line.text(at: now + .seconds(3)).hasPrefix("Importing: 60 %"))
    }

    @Test func `sizes and spans are short`() {
        #expect(
            [0, 1, 999, 1_000, 9_949, 999_600, 3 << 30].map(Phrase.size) == [
                "0 bytes", "1 byte", "999 bytes", "1.0 kB", "9.9 kB", "1.0 MB", "3.2 GB",
            ])
        #expect(
            [0.2, 59, 60, 3_600, 7_500].map(Phrase.span) == [
                "1 s", "59 s", "1 min", "1 h", "2 h 5 min",
            ])
    }

    @Test func `the locale says whether a terminal shows more than ASCII`() {
        #expect(Output.isUnicode(in: ["LANG": "en_GB.UTF-8"]))
        #expect(Output.isUnicode(in: ["LC_ALL": "", "LC_CTYPE": "C.utf8", "LANG": "C"]))
        #expect(!Output.isUnicode(in: ["LC_ALL": "C", "LANG": "en_GB.UTF-8"]))
        #expect(!Output.isUnicode(in: [:]))
    }

    @Test func `a summary of findings counts what is not in order`() {
        let (ok, note) = (Finding.ok("a", "b"), Finding.note("a", "b"))
        let problem = Finding.problem("a", "b")
        #expect(Finding.summary([ok]) == "Everything is in order.")
        #expect(Finding.summary([ok, note]) == "Nothing is broken; 1 note.")
        #expect(
            Finding.summary([problem, problem, note, ok]) == "Found 2 problems and 1 note.")
    }

    @Test func `nothing in a text for a terminal can control it`() {
        let evil = "\u{1B}[2J\u{9B}\u{202E}\n"
        let shown = #"\u001b[2J\u009b\u202e\n"#
        #expect(
            ("a \(evil)\n" + "\(TerminalText(evil))" as TerminalText).string
                == "a \(shown)\n\(shown)")
        #expect(TerminalText(lines: "a\n\tb\r").string == "a\n\tb\\r")
        let table = Table(header: ["A", "B"], rows: [[evil, "b"]])
        #expect(table.lines()[1].string == "\(shown)  b")
        let change = Watch.Change(key: try! Key(evil), value: .string(evil), origin: .elsewhere)
        #expect(change.text.string == "\(shown) = \"\(shown)\"")
        #expect(
            JSON.value(.dictionary([ExactString(evil): .string(evil)])).text.hasControls == false)
    }

    @Test func `a log line cannot control a terminal, whatever is in it`() {
        let evil = "\u{1B}[2J\n"
        let line = event(in: .text) { logger in
            logger[metadataKey: "own"] = "\(evil)"
            logger.error(
                "A \(evil)", metadata: ["a": "\(evil)", "b": ["\(evil)"], "c": ["d": "\(evil)"]])
        }
        #expect(line?.metadata?.count == 4)
        let text = "\(line?.message ?? "none") \(line?.metadata ?? [:])"
        #expect(!text.hasControls && text.contains(#"\u001b[2J\n"#), "\(text)")
    }

    @Test func `an error is in a log of either form`() {
        let event = event { $0.error("A", error: Failure(.no, "its reason"), metadata: ["b": "c"]) }
        let forms: [String?] = [
            "\(event?.visible.metadata ?? [:])", event?.json(at: Date()).text,
        ]
        for form in forms { #expect(form?.contains("its reason") == true) }
    }

    /// The event that is logged, as the handler of a format gives it to what writes the lines.
    private func event(in format: LogFormat? = nil, _ log: (inout Logger) -> Void) -> LogEvent? {
        let logged = Mutex<LogEvent?>(nil)
        let lines = EventLogHandler { event in logged.withLock { $0 = event } }
        var logger = Logger(label: "test") { _ in format?.handler(lines: lines) ?? lines }
        log(&logger)
        return logged.withLock { $0 }
    }

    @Test func `a table's value stays on its line and within its length`() {
        let long = PropertyListValue.string(String(repeating: "x", count: 1_000_000))
        #expect(long.line(20).count == 20)
        #expect(long.line(nil).count == 1_000_002)
        let wide = PropertyListValue.string(String(repeating: "京", count: 40))
        #expect(wide.line(20) == "\"" + String(repeating: "京", count: 9) + "…")
        #expect(PropertyListValue.string("京").line(4) == "\"京\"")
        #expect(PropertyListValue.string("a\nb\u{1B}[2J").line(40) == #""a\nb\u001b[2J""#)
    }

    @Test func `columns are aligned by what a terminal shows`() throws {
        let values = [try Key("京都"): PropertyListValue.integer(1), try Key("ab"): .real(2)]
        let lines = ListCommand.table(of: values).lines()
        #expect(lines == ["KEY   TYPE     VALUE", "ab    real     2.0", "京都  integer  1"])
    }

    @Test func `a row that a terminal would wrap is a paragraph`() {
        let table = Table(header: ["NAME", "ID", "HAS"], rows: [["laptop", "12345678", "all"]])
        #expect(table.lines(columns: 21) == ["NAME    ID        HAS", "laptop  12345678  all"])
        #expect(table.lines(columns: 20) == ["laptop", "  ID   12345678", "  HAS  all"])
        let values = Table(
            header: ["KEY", "VALUE"], rows: [["k"]],
            values: [[PropertyListValue.string(String(repeating: "x", count: 40)).line]])
        let line = "k    \"" + String(repeating: "x", count: 14) + "…"
        #expect(values.lines(columns: 21) == ["KEY  VALUE", "\(line)"])
        #expect(values.lines(columns: 20)[1].string.hasPrefix("  VALUE  \"x"))
    }

    @Test func `in a pipe, no row is as long as the longest value of another`() {
        let values = [String(repeating: "x", count: 10_000), "y"].map(PropertyListValue.string)
        let table = Table(
            header: ["KEY", "VALUE", "BEFORE"], rows: [["a"], ["key"]],
            values: values.map { [$0.line, PropertyListValue.boolean(true).line] })
        let lines = table.lines().map(\.string)
        #expect(lines.map(\.count) == [18, 10_013, 14])
        #expect(lines[2] == "key  \"y\"  true")
    }

    @Test func `keys that look alike have their code points beside them`() throws {
        let keys = try ["th\u{E9}me", "the\u{301}me", "tоn", "ton", "a", "a ", "b", "京都"].map(
            Key.init)
        let names = KeyNames(keys)
        #expect(
            keys.map(names.shown) == [
                #"th\u{E9}me (th\u00e9me)"#.replacing(#"\u{E9}"#, with: "\u{E9}"),
                "the\u{301}me (the" + #"\u0301me)"#, #"tоn (t\u043en)"#, "ton (ton)",
                "a (a)", #"a  (a\u0020)"#, "b", "京都",
            ])
        let one = KeyNames([try Key("tоn")])
        #expect(one.shown(try Key("tоn")) == "tоn")
        #expect(
            one.absent(try Key("ton")) == #""ton"; "tоn" (t\u043en) only looks like it"#)
        #expect(one.absent(try Key("x")) == "\"x\"")
    }

    @Test func `a command with words from a server is safe for a shell`() {
        let plain = Phrase.signIn(server: "https://[::1]:7717", code: "7KQ2-M9XD")
        #expect(plain == "ubiquity sign-in --server 'https://[::1]:7717' --code 7KQ2-M9XD")
        #expect(Phrase.word("http://127.0.0.1:7717") == "http://127.0.0.1:7717")
        #expect(Phrase.word("X; echo $(id) `id`") == "'X; echo $(id) `id`'")
        #expect(Phrase.word("it's\n") == "'it'\\''s\n'")
        #expect(Phrase.word("") == "''")
    }

    @Test func `numbers are grouped and nouns agree`() {
        #expect(Phrase.keys(1) == "1 key")
        #expect(Phrase.keys(1_048_576) == "1,048,576 keys")
        #expect(Phrase.grouped(-1_000) == "-1,000")
    }
}

struct WatchTests {
    @Test func `a watch of some keys says nothing of others`() throws {
        let (a, b) = (try Key("a"), try Key("b"))
        var watch = Watch(
            known: [a: .integer(1), b: .integer(1)], keys: [a], count: nil, until: nil)
        #expect(watch.initial.map(\.key) == [a])
        #expect(watch.initial.map(\.text) == ["a = 1"])
        let event = UbiquityChange(origin: .elsewhere, keys: ["a", "b"])
        #expect(watch.changes(event, in: [a: .integer(2), b: .integer(2)]).map(\.key) == [a])
    }

    @Test func `what was shown already is not shown again, except a refusal`() throws {
        let key = try Key("a")
        var watch = Watch(known: [key: .integer(1)], count: nil, until: nil)
        let same = UbiquityChange(origin: .elsewhere, keys: ["a"])
        #expect(watch.changes(same, in: [key: .integer(1)]).isEmpty)
        #expect(watch.changes(same, in: [:]).map(\.value) == [nil])
        let refusal = UbiquityChange(origin: .quotaViolation, keys: ["a"])
        #expect(watch.changes(refusal, in: [:]).count == 1)
    }

    @Test func `a watch ends after its count, even in the middle of an event`() throws {
        var watch = Watch(known: [:], count: 1, until: nil)
        let event = UbiquityChange(origin: .elsewhere, keys: ["a", "b"])
        let values = [try Key("a"): PropertyListValue.integer(1), try Key("b"): .integer(2)]
        #expect(watch.changes(event, in: values).count == 1)
        #expect(watch.isOver)
    }

    @Test func `a watch ends when its last key changes`() throws {
        var watch = Watch(known: [:], count: nil, until: "b")
        let event = UbiquityChange(origin: .elsewhere, keys: ["b"])
        _ = watch.changes(event, in: [try Key("b"): .integer(1)])
        #expect(watch.isOver)
    }
}
