// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

struct LocalNetworkTests {
    private static func network(
        _ found: [(String, String)], default name: String? = nil
    ) throws -> LocalNetwork {
        LocalNetwork(
            try found.map { InterfaceAddress($0.0, try #require(IPAddress($0.1))) },
            defaultInterface: name)
    }

    private static func texts(_ network: LocalNetwork) -> [String] {
        network.addresses.map { "\($0.interface) \($0.address)" }
    }

    @Test func `the address on the way to the Internet is printed first, and a private one`() throws
    {
        let found = [
            ("lo", "127.0.0.1"), ("tun0", "10.8.0.2"), ("eth0", "203.0.113.5"),
            ("wlan0", "192.168.1.20"), ("wlan0", "fe80::1"), ("wlan0", "2001:db8::1"),
            ("eth1", "169.254.3.4"),
        ]
        #expect(
            Self.texts(try Self.network(found, default: "wlan0"))
                == ["wlan0 192.168.1.20", "tun0 10.8.0.2", "eth0 203.0.113.5"])
        #expect(
            Self.texts(try Self.network(found))
                == ["tun0 10.8.0.2", "wlan0 192.168.1.20", "eth0 203.0.113.5"])
        #expect(Self.texts(try Self.network(found, default: "eth0")).first == "eth0 203.0.113.5")
    }

    @Test func `addresses of containers are printed only where there are no others`() throws {
        let inner = [
            ("docker0", "172.17.0.1"), ("br-1f2e", "172.18.0.1"), ("virbr0", "192.168.122.1"),
        ]
        #expect(Self.texts(try Self.network(inner)).count == 3)
        let network = try Self.network(inner + [("eth0", "10.0.0.7")])
        #expect(Self.texts(network) == ["eth0 10.0.0.7"])
        #expect(network.others == [])
    }

    @Test func `of each other interface one address is named`() throws {
        let network = try Self.network([
            ("eth0", "10.0.0.7"), ("eth0", "10.0.0.8"), ("wlan0", "192.168.1.20"),
            ("wlan0", "192.168.1.21"),
        ])
        #expect(network.first?.address.description == "10.0.0.7")
        #expect(network.others.map(\.address.description) == ["192.168.1.20"])
        #expect(try Self.network([]).first == nil)
        #expect(try Self.network([("lo", "127.0.0.1"), ("eth0", "0.0.0.0")]).addresses == [])
    }

    @Test func `the addresses are bounded`() throws {
        let found = (1...99).map { ("eth\($0)", "10.0.0.\($0)") }
        #expect(try Self.network(found).addresses.count == 32)
    }

    @Test func `the default route is the one with the lowest metric`() {
        let routes = """
            Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
            eth0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
            tun0\t00000000\t0101080A\t0003\t0\t0\t5\t00000080\t0\t0\t0
            wlan0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
            wlan0\t0001A8C0\t00000000\t0001\t0\t0\t1\t00FFFFFF\t0\t0\t0
            """
        #expect(LocalNetwork.defaultInterface(inRoutes: routes) == "wlan0")
        #expect(LocalNetwork.defaultInterface(inRoutes: "Iface\n\n") == nil)
        #expect(LocalNetwork.defaultInterface(inRoutes: "eth0 00000000") == nil)
    }

    @Test(arguments: [
        ("10.255.0.1", true), ("172.31.0.1", true), ("172.32.0.1", false), ("192.168.0.1", true),
        ("192.169.0.1", false), ("100.64.0.1", true), ("100.128.0.1", false),
        ("169.254.0.1", true), ("8.8.8.8", false), ("fd00::1", true), ("fe80::1", true),
        ("2001:db8::1", false), ("::ffff:10.0.0.1", true),
    ])
    func `a private address is one that nobody has on the Internet`(text: String, isPrivate: Bool)
        throws
    {
        let address = try #require(IPAddress(text))
        #expect(address.isPrivate == isPrivate)
        #expect(HouseConstraints.permits(address) == isPrivate)
    }

    @Test func `the authority of a house vouches for this machine too, and for no public name`()
        throws
    {
        #expect(HouseConstraints.permits(try #require(IPAddress("127.0.0.1"))))
        let domains = HouseConstraints.domains + ["u.example"]
        for name in ["pi.local", "localhost", "u.example", "a.u.example"] {
            #expect(HouseConstraints.permits(name, domains: domains), "\(name)")
        }
        for name in ["example", "xlocal", "local.example", "pi", "u.example.evil"] {
            #expect(!HouseConstraints.permits(name, domains: domains), "\(name)")
        }
    }

    @Test(arguments: [
        ("pi", "pi.local"), ("PI.fritz.box", "pi.local"), ("my-pi2", "my-pi2.local"),
        ("localhost", nil), ("", nil), ("my_pi", nil), ("größe", nil),
        (String(repeating: "a", count: 64), nil),
    ])
    func `the local name of a machine has the form of a name`(name: String, expected: String?) {
        #expect(HouseConstraints.localName(ofMachine: name) == expected)
    }

    @Test func `addresses and masks are bytes in the order of the network`() throws {
        #expect(try #require(IPAddress("192.168.1.2")).bytes == [192, 168, 1, 2])
        let v6 = try #require(IPAddress("fd00::1:2"))
        #expect(IPAddress(bytes: v6.bytes) == v6)
        #expect(IPAddress(bytes: [192, 168, 1, 2]) == IPAddress("192.168.1.2"))
        #expect(IPAddress(bytes: [1]) == nil)
        #expect(v6.bytes == [0xFD] + Array(repeating: 0, count: 12) + [1, 0, 2])
        #expect(
            try #require(AddressRange("172.16.0.0/12")).bytesAndMask
                == [172, 16, 0, 0, 255, 240, 0, 0])
        #expect(
            try #require(AddressRange("10.0.0.1")).bytesAndMask.suffix(4) == [255, 255, 255, 255])
        #expect(
            try #require(AddressRange("fe80::/10")).bytesAndMask.suffix(16)
                == [255, 192] + Array(repeating: 0, count: 14))
    }
}

struct CertificateRenewalTests {
    @Test(
        arguments: [
            (now: 1_000, isDue: false), (1_799, false), (1_801, true), (2_000, true), (3_000, true),
            (999, true),
        ] as [(now: Int64, isDue: Bool)])
    func `a certificate is made anew in its last third, and when the clock was wrong`(
        now: Int64, isDue: Bool
    ) {
        let names: Set = ["a", "b"]
        #expect(
            CertificateRenewal.isDue(
                valid: 1_000..<2_200, names: names, wanted: ["a"], now: now) == isDue)
    }

    @Test func `a certificate is made anew for a new name, and not for one that is gone`() {
        #expect(
            CertificateRenewal.isDue(valid: 0..<90, names: ["a"], wanted: ["a", "b"], now: 1))
        #expect(
            !CertificateRenewal.isDue(valid: 0..<90, names: ["a", "b"], wanted: ["b"], now: 1))
    }
}

struct PlainHTTPObstacleTests {
    @Test(
        arguments: [
            ("http://127.0.0.1:7717", .onlyThisMachine), ("https://localhost", .onlyThisMachine),
            ("http://[::1]:80/path", .onlyThisMachine), ("https://LOCALHOST:1/x", .onlyThisMachine),
            ("http://192.168.1.2:7717", .plainHTTP), ("HTTP://u.example", .plainHTTP),
            ("https://192.168.1.2:7717", nil), ("https://localhost.example", nil), ("", nil),
            ("localhost", nil),
        ] as [(String, PlainHTTPRule.Obstacle?)])
    func `an address that other devices cannot use is known as one`(
        address: String, expected: PlainHTTPRule.Obstacle?
    ) {
        #expect(PlainHTTPRule.obstacle(at: address) == expected)
    }
}
