// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

struct AddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
        ("::1", "::1"), ("::", "::"), ("::102:304", "::1.2.3.4"), ("1::", "1::"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:7f00:1", "127.0.0.1"), ("0:0:0:0:0:ffff:127.0.0.1", "127.0.0.1"),
        ("2001:DB8::0:1", "2001:db8::1"), ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
        ("fe80::1%eth0", "fe80::1"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
    ])
    func `an address is read and written in its shortest form`(text: String, form: String) throws {
        let address = try #require(IPAddress(text))
        #expect("\(address)" == form)
        #expect(IPAddress("\(address)") == address)
    }

    @Test(arguments: [
        "", "1", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.1.",
        "127.0.0.256", "127.0.0.-1", "127.0.0.+1", " 127.0.0.1", "127.0.0.1 ", "127..0.1",
        "127.0.0.1.evil.example", "127.0.0.1:80", "[::1]", ":", ":::", "1::2::3", "12345::", "g::",
        "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::8", "::127.0.0",
        "127.0.0.1::", "::1.2.3.4:5", "١٢٧.0.0.1", "localhost", "127.0.0.1\u{0}", "::1\u{0}x",
    ])
    func `a text that is not an address is refused`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func `an address counts together with those of the same Internet line`() throws {
        func same(_ a: String, _ b: String) throws -> Bool {
            try #require(IPAddress(a)).neighbourhood == #require(IPAddress(b)).neighbourhood
        }
        #expect(try !same("10.0.0.1", "10.0.0.2"))
        #expect(try same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"))
        #expect(try !same("2001:db8:1:2::1", "2001:db8:1:3::1"))
        #expect(try same("::ffff:10.0.0.1", "10.0.0.1"))
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
        ("10.0.0.1", "10.0.0.1", true), ("10.0.0.1", "10.0.0.2", false),
        ("0.0.0.0/0", "192.0.2.1", true), ("0.0.0.0/0", "2001:db8::1", false),
        ("10.0.0.128/25", "10.0.0.200", true), ("10.0.0.128/25", "10.0.0.127", false),
        ("2001:db8::/32", "2001:db8:9::1", true), ("2001:db8::/32", "2001:db9::1", false),
        ("2001:db8::/65", "2001:db8::7fff:0:0:1", true),
        ("2001:db8::/65", "2001:db8::8000:0:0:1", false), ("::/0", "10.0.0.1", false),
        ("10.0.0.0/8", "::ffff:10.1.1.1", true),
    ])
    func `a range has the addresses that begin as it does`(
        range: String, address: String, isInside: Bool
    ) throws {
        let range = try #require(AddressRange(range))
        let address = try #require(IPAddress(address))
        #expect(range.contains(address) == isInside)
    }

    @Test(arguments: [
        "", "/8", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/8/8", "a/8", "1/+8",
    ])
    func `a text that is not a range is refused`(text: String) {
        #expect(AddressRange(text) == nil)
    }

    @Test(arguments: [
        ("localhost", true), ("LOCALHOST", true), ("127.0.0.1", true), ("127.255.255.254", true),
        ("[::1]", true), ("::1", true), ("[::ffff:127.0.0.1]", true),
        ("[0:0:0:0:0:0:0:1]", true), ("", false), ("localhost.", false),
        ("localhost.example", false), ("app.localhost", false), ("localhostx", false),
        ("127.0.0.1.evil.example", false), ("127.0.0.1.", false), ("127.1", false),
        ("2130706433", false), ("0x7f000001", false), ("0177.0.0.1", false), ("128.0.0.1", false),
        ("126.255.255.255", false), ("0.0.0.0", false), ("[::]", false), ("[::2]", false),
        ("[::1", false), ("::1]", false), ("[fe80::1%lo]", false), ("[::1%25lo]", false),
        ("127.0.0.%31", false), ("192.168.1.1", false), ("ubiquity.example", false),
        ("lоcalhost", false),
    ])
    func `plain HTTP is only used to this machine`(host: String, isLoopback: Bool) {
        #expect(PlainHTTPRule.isLoopback(host) == isLoopback)
    }
}

struct TrustedProxiesTests {
    private func origin(
        _ peer: String, _ forwarded: [String], trusting ranges: [String] = ["10.0.0.0/8"]
    ) throws -> String {
        let proxies = TrustedProxies(try ranges.map { try #require(AddressRange($0)) })
        return "\(proxies.origin(peer: try #require(IPAddress(peer)), forwarded: forwarded))"
    }

    @Test func `a stranger's claim about its origin is ignored`() throws {
        #expect(try origin("192.0.2.9", ["198.51.100.1"]) == "192.0.2.9")
        #expect(try origin("10.0.0.1", ["198.51.100.1"], trusting: []) == "10.0.0.1")
    }

    @Test(
        arguments: [
            ([], "10.0.0.1"), (["198.51.100.1"], "198.51.100.1"),
            (["203.0.113.5, 198.51.100.1"], "198.51.100.1"),
            (["198.51.100.1, 10.0.0.2,10.0.0.3"], "198.51.100.1"),
            (["203.0.113.5", "198.51.100.1"], "198.51.100.1"), (["10.0.0.7"], "10.0.0.7"),
            (["198.51.100.1:4711"], "198.51.100.1"), (["[2001:db8::1]:4711"], "2001:db8::1"),
            (["2001:db8::1"], "2001:db8::1"), (["nonsense"], "10.0.0.1"),
            (["198.51.100.1, nonsense, 10.0.0.3"], "10.0.0.3"), ([""], "10.0.0.1"),
            ([", ,"], "10.0.0.1"), (["198.51.100.1, "], "198.51.100.1"),
            (["::ffff:198.51.100.1"], "198.51.100.1"),
        ] as [([String], String)])
    func `behind a proxy, the right-most address that is not a proxy's counts`(
        forwarded: [String], expected: String
    ) throws {
        #expect(try origin("10.0.0.1", forwarded) == expected)
    }

    @Test func `a list without end costs no more than a short one`() throws {
        let list = Array(repeating: "10.0.0.2", count: 100_000).joined(separator: ",")
        #expect(try origin("10.0.0.1", ["198.51.100.1," + list]) == "10.0.0.2")
    }
}
