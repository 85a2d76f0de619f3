// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
import ClientTestSupport
import Foundation
import Testing
import UbiquityHTTP

/// The proxies that the environment names.
@Suite struct HTTPProxyTests {
    @Test(arguments: [
        (["HTTPS_PROXY": "http://p:1"], "https://a.example/v1", "http://p:1"),
        (
            ["https_proxy": "http://q:1", "HTTPS_PROXY": "http://p:1"], "https://a.example",
            "http://q:1"
        ),
        (["ALL_PROXY": "socks5h://p:1"], "https://a.example", "socks5h://p:1"),
        (["ALL_PROXY": "socks5h://p:1"], "http://a.example", "socks5h://p:1"),
        (["all_proxy": "p:1", "HTTPS_PROXY": "http://q:1"], "HTTPS://A.example", "http://q:1"),
        (["http_proxy": "p:1"], "http://a.example", "p:1"),
        (["https_proxy": "http://ada:secret@p:1/"], "https://a.example", "http://p:1/"),
        (["https_proxy": "ada:secret@p:1"], "https://a.example", "p:1"),
        (["https_proxy": "p:1", "NO_PROXY": "b.example,10.0.0.0/8"], "https://a.example", "p:1"),
        (["https_proxy": "p:1", "NO_PROXY": "example"], "https://notexample", "p:1"),
        (["https_proxy": "p:1", "NO_PROXY": "10.0.0.0/8"], "https://11.0.0.1", "p:1"),
    ])
    func `a variable names the proxy of a URL`(
        environment: [String: String], url: String, proxy: String
    ) {
        #expect(CurlClient(environment: environment).proxy(for: url) == proxy)
    }

    @Test(arguments: [
        ([:], "https://a.example"), (["HTTPS_PROXY": ""], "https://a.example"),
        (["HTTP_PROXY": "p:1"], "http://a.example"), (["https_proxy": "p:1"], "http://a.example"),
        (["ALL_PROXY": "p:1"], "http://127.0.0.1:7717"),
        (["ALL_PROXY": "p:1"], "https://localhost"),
        (["ALL_PROXY": "p:1"], "https://[::1]:7717/v1"), (["ALL_PROXY": "p:1"], "no URL"),
        (["ALL_PROXY": "p:1", "NO_PROXY": "*"], "https://a.example"),
        (["ALL_PROXY": "p:1", "no_proxy": "b, .example"], "https://a.Example:1"),
        (["ALL_PROXY": "p:1", "NO_PROXY": "a.example"], "https://b.a.example."),
        (["ALL_PROXY": "p:1", "NO_PROXY": "10.0.0.0/8"], "https://10.1.2.3"),
        (["ALL_PROXY": "p:1", "NO_PROXY": "2001:db8::/32"], "https://[2001:DB8::1]:1"),
    ])
    func `a URL needs none without a variable, on this machine, or as an exception`(
        environment: [String: String], url: String
    ) {
        #expect(CurlClient(environment: environment).proxy(for: url) == nil)
    }

    @Test func `a proxy leads to a server, which sees and proves its own name`() async throws {
        let server = try await TLSServer(.elsewhere)
        let port = UInt16(server.port)
        let proxy = try RawServer { connection in
            guard connection.request() != nil else { return }
            connection.write("HTTP/1.1 200 Connected\r\nX-Proxy: 1\r\n\r\n")
            connection.join(port)
        }
        let client = CurlClient(environment: [
            "HTTPS_PROXY": "http://ada:secret@127.0.0.1:\(proxy.port)"
        ])
        let request = HTTPRequest("GET", "https://ubiquity.example/").with {
            $0.certificates = TestIdentity.authority
        }
        let outcome = try await request.sent(by: client)
        #expect(outcome.isComplete, "\(outcome.errors)")
        #expect(outcome.text == "ubiquity.example")
        #expect(outcome.head?["x-proxy"] == nil)
        let head = try #require(proxy.heads.first)
        #expect(head.hasPrefix("CONNECT ubiquity.example:443 HTTP/1.1\r\n"))
        #expect(head.contains("Proxy-Authorization: Basic YWRhOnNlY3JldA=="))
        // This machine needs none.
        let near = HTTPRequest("GET", server.url).with { $0.certificates = TestIdentity.authority }
        #expect(try await near.sent(by: client).failure == .certificate(.otherName))
        #expect(proxy.accepted == 1)
    }

    @Test(arguments: [
        ("http://ada:se/cr@et@proxy:3128", "http://proxy:3128"), ("proxy:1", "proxy:1"),
        ("ada:secret@proxy", "proxy"), ("socks5h://ada@[::1]:1", "socks5h://[::1]:1"),
    ])
    func `a proxy is named without its user and password`(proxy: String, shown: String) {
        let client = CurlClient(environment: ["ALL_PROXY": proxy])
        #expect(client.proxy(for: "https://example.org") == shown)
    }

    @Test(arguments: [
        "tcp://ada:secret@127.0.0.1:1", "http://ada:secret@127.0.0.1:1", "://ada:secret@",
    ])
    func `an error does not tell a proxy's password`(proxy: String) async throws {
        let client = CurlClient(environment: ["https_proxy": proxy])
        let outcome = try await HTTPRequest("GET", "https://example.org").sent(by: client)
        #expect(outcome.failure != nil)
        #expect(!"\(outcome.errors)".contains("secret"))
    }

    @Test func `a proxy's refusal is told`() async throws {
        let proxy = try RawServer { connection in
            _ = connection.request()
            connection.answer("no", status: "407 Proxy Authentication Required")
        }
        let client = CurlClient(environment: ["ALL_PROXY": "http://127.0.0.1:\(proxy.port)"])
        let outcome = try await HTTPRequest("GET", "https://ubiquity.example/").sent(by: client)
        #expect(outcome.failure == .other("the proxy refused the connection with 407"))
        #expect(outcome.head == nil)
    }

    @Test func `a proxy that does not answer is told apart from the server`() async throws {
        let port = try RawServer { _ in }.port
        let client = CurlClient(environment: ["ALL_PROXY": "http://127.0.0.1:\(port)"])
        let request = HTTPRequest("GET", "https://ubiquity.example/")
        try await until("the port's end") {
            try await request.sent(by: client).failure
                == .other("the proxy does not answer: connection refused")
        }
    }

    @Test func `a request for plain HTTP is given to the proxy`() async throws {
        let proxy = try RawServer { connection in
            _ = connection.request()
            connection.answer()
        }
        let client = CurlClient(environment: ["http_proxy": "127.0.0.1:\(proxy.port)"])
        #expect(
            try await HTTPRequest("GET", "http://ubiquity.example/a").sent(by: client).isComplete)
        #expect(proxy.heads.first?.hasPrefix("GET http://ubiquity.example/a HTTP/1.1\r\n") == true)
    }
}

extension RawServer.Connection {
    /// Passes bytes between the connection and a port of this machine, until one side is closed.
    fileprivate func join(_ port: UInt16) {
        let other = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { Glibc.close(other) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(other, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { return }
        Thread.detachNewThread { Self.pass(from: socket, to: other) }
        Self.pass(from: other, to: socket)
    }

    private static func pass(from: Int32, to: Int32) {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while case let count = recv(from, &bytes, bytes.count, 0), count > 0 {
            guard send(to, bytes, count, Int32(MSG_NOSIGNAL)) == count else { break }
        }
        shutdown(to, Int32(SHUT_WR))
    }
}
#endif
