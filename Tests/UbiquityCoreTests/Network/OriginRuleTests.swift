// SPDX-License-Identifier: Apache-2.0

internal import Testing

@testable internal import UbiquityCore

struct OriginRuleTests {
    @Test(arguments: [
        ("https://notes.example", "https://notes.example"),
        ("HTTPS://Notes.Example:443", "https://notes.example"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:443", "http://localhost:443"),
        ("https://notes.example:8443", "https://notes.example:8443"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
    ])
    func `an origin is as browsers write it`(text: String, origin: String) {
        #expect(OriginRule.origin(text) == origin)
        #expect(OriginRule([text]).admits(origin))
    }

    @Test(arguments: [
        "", "*", "null", "notes.example", "https://", "https://notes.example/", "https://*.example",
        "https://notes.example/a", "https://a@notes.example", "https://notes.example, https://b",
        "https://notes.example\r\nx: y", "https://notes.example:123456", "file://",
    ])
    func `what names no single origin is none`(text: String) {
        #expect(OriginRule.origin(text) == nil)
        #expect(OriginRule([text]).isEmpty)
    }

    @Test func `only what is exactly an allowed origin is admitted`() {
        let rule = OriginRule(["https://notes.example"])
        for other in [
            "http://notes.example", "https://notes.example:444", "https://notes.example.evil",
            "https://a.notes.example", "null", "",
        ] {
            #expect(!rule.admits(other))
        }
    }
}
