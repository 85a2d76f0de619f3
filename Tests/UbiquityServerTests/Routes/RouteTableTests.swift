// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

struct RouteTableTests {
    @Test(arguments: [
        ("/", "/", [String]()), ("/", "//", nil), ("/", "/a", nil),
        ("/v1/config", "/v1/config", []), ("/v1/config", "/v1/config/", []),
        ("/v1/config", "/v1/config//", nil), ("/v1/config", "//v1/config", nil),
        ("/v1/config", "/v1//config", nil), ("/v1/config", "/v1/confi", nil),
        ("/v1/config", "/v1/configs", nil), ("/v1/config", "/v1/%63onfig", nil),
        ("/v1/config", "v1/config", nil), ("/v1/config", "*", nil),
        ("/a/{b}", "/a/x", ["b=x"]), ("/a/{b}", "/a/x/", ["b=x"]), ("/a/{b}", "/a/", nil),
        ("/a/{b}", "/a//", nil), ("/a/{b}", "/a/x/y", nil), ("/a/{b}", "/a/x%2Fy", ["b=x%2Fy"]),
        ("/a/{b}/c", "/a/x/c", ["b=x"]), ("/a/{b}/c", "/a//c", nil), ("/a/{b}/c", "/a/x", nil),
        ("/a/{b}/c/{d}", "/a/c/c/c", ["b=c", "d=c"]), ("/a/{b}/c/{d}", "/a/x/c/", nil),
    ])
    func `a path matches a pattern as a whole`(
        pattern: String, path: String, expected: [String]?
    ) {
        let found = PathPattern(pattern).parameters(in: path[...])
        #expect(found?.map { "\($0.name)=\($0.text)" } == expected)
    }

    @Test(arguments: [
        ("/a/b", "/a/b", nil), ("/a?x=1", "/a", "1"), ("/a?x=1#f", "/a", "1"),
        ("/a#f", "/a#f", nil),
        ("/a?y=2&x=1&x=3", "/a", "1"), ("/a?x", "/a", ""), ("/a?x=", "/a", ""),
        ("/a?x=b=c", "/a", "b=c"), ("/a?x=b%2Fc", "/a", "b/c"), ("/a?x=%zz", "/a", "%zz"),
        ("/a?%78=1", "/a", nil), ("/a?&&=&x=1?2", "/a", "1?2"), ("/a?xx=1", "/a", nil),
        ("http://h/a?x=1", "/a", "1"), ("http://u:p@h:1/a?x=1#f", "/a", "1"),
        ("http://h/a#f", "/a", nil), ("http://h", "", nil), ("http://h?x=1", "", "1"),
        ("/a?y=http://h/b&x=1", "/a", "1"), ("*", "*", nil), ("", "", nil),
    ])
    func `an address has a path and a query`(uri: String, path: String, x: String?) {
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: uri)
        #expect(head.path == path)
        #expect(head.query.text("x") == x)
    }
}
