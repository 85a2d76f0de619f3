// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

/// Tests what HTTP requires of every server.
@Suite(.serialized) struct HTTPTests {
    /// - Returns: All that came until the server closed the connection.
    private func answer(_ request: String, by server: RunningServer) async throws -> String {
        let connection = try await RawConnection.open(server.port)
        await connection.send(request)
        return try await connection.end()
    }

    private static let last = "GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

    @Test func `HEAD is answered wherever GET is, and never with a body`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let credential = "Authorization: Bearer \(device.credential)\r\n"
            for (path, header, status) in [
                ("/v1/config", "", "200"), ("/health/live", "", "200"),
                ("/v1/stores", credential, "200"),
                ("/v1/account/export", credential, "200"),
                ("/v1/stores/notes/changes", credential, "200"),
                ("/v1/stores/notes/changes", credential + "Accept: text/event-stream\r\n", "200"),
                ("/v1/account", "", "401"), ("/v1/nothing", "", "404"), ("/v1/sign-in", "", "405"),
                ("/v1/config", "Accept: text/plain\r\n", "406"),
            ] {
                let head = "HEAD \(path) HTTP/1.1\r\nHost: a\r\n\(header)\r\n"
                let text = try await answer(head + Self.last, by: server)
                let answers = text.components(separatedBy: "HTTP/1.1 ").dropFirst()
                #expect(answers.count == 2, "\(path): \(text)")
                #expect(answers.first?.hasPrefix(status) == true, "\(path): \(text)")
                #expect(answers.first?.hasSuffix("\r\n\r\n") == true, "\(path): \(text)")
                #expect(answers.last?.hasSuffix("{\"status\":\"ok\"}") == true)
            }
            let get = try await server.send("GET", "/v1/account", credential: device.credential)
            let head = try await server.send("HEAD", "/v1/account", credential: device.credential)
            #expect(head.status == 200 && head.body.isEmpty)
            #expect(head.headers["content-length"] == get.headers["content-length"])
            // Neither the stream nor the export is still there.
            #expect(
                try await server.send("GET", "/v1/account/export", credential: device.credential)
                    .status == 200)
        }
    }

    @Test(arguments: ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nhost: b\r\n"])
    func `a request that names no server, or two, is refused`(hosts: String) async throws {
        try await withServer { server in
            let text = try await answer("GET /v1/config HTTP/1.1\r\n\(hosts)\r\n", by: server)
            #expect(text.hasPrefix("HTTP/1.1 400 "))
            #expect(text.contains("in the Host header"))
            #expect(try await server.send("GET", "/health/live").status == 200)
        }
    }

    @Test(arguments: [
        ("1.1", "Host: a\r\nConnection: close"), ("1.1", "Host: a\r\nConnection: Close"),
        ("1.1", "Host: a\r\nconnection: TE, close"), ("1.0", "Host: a"), ("1.0", "X: a"),
        ("1.0", "Connection: keep-alive"),
    ])
    func `an answer that is the last says so, and the connection ends`(
        version: String, header: String
    ) async throws {
        try await withServer { server in
            let request = "GET /health/live HTTP/\(version)\r\n\(header)\r\n\r\n"
            let text = try await answer(request + Self.last, by: server)
            #expect(text.hasPrefix("HTTP/\(version) 200 OK\r\n"), "\(text)")
            #expect(text.lowercased().components(separatedBy: "connection: close\r\n").count == 2)
            #expect(text.hasSuffix("\r\n\r\n{\"status\":\"ok\"}"), "\(text)")
        }
    }

    @Test func `an answer without a length comes whole to HTTP 1.0`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let large = "\"\(String(repeating: "x", count: 200_000))\""
            for key in ["a", "b"] { try await device.set(key, large) }
            let text = try await answer(
                "GET /v1/account/export HTTP/1.0\r\n"
                    + "Authorization: Bearer \(device.credential)\r\n\r\n", by: server)
            #expect(text.hasPrefix("HTTP/1.0 200 OK\r\n"))
            #expect(!text.lowercased().contains("transfer-encoding"))
            #expect(!text.lowercased().contains("content-length"))
            let body = try #require(text.components(separatedBy: "\r\n\r\n").last)
            #expect(try JSONSerialization.jsonObject(with: Data(body.utf8)) is [String: Any])
        }
    }

    @Test func `an address with an empty part leads nowhere`() async throws {
        try await withServer { server in
            for path in ["//v1//config", "//v1/config", "/v1//config", "/v1/config//"] {
                let text = try await answer(
                    "GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", by: server)
                #expect(text.hasPrefix("HTTP/1.1 404 "), "\(path)")
            }
            #expect(try await server.send("GET", "/v1/config?a=b//c").status == 200)
        }
    }

    @Test(arguments: [
        "evil.example", "evil.example:7717", "a.evil.example", "10.0.0.1", "[::2]:80",
    ])
    func `a request for a server with another name is refused`(host: String) async throws {
        try await withServer { server in
            let text = try await answer(
                "GET /v1/config HTTP/1.1\r\nHost: \(host)\r\n\r\n", by: server)
            #expect(text.hasPrefix("HTTP/1.1 421 Misdirected Request\r\n"))
            #expect(text.contains("host-foreign"))
            #expect(text.contains(#"the name \"\#(host)\""#), "\(text)")
            #expect(text.contains("host-name") && text.contains("trusted-proxy"))
        }
    }

    @Test func `each foreign name is in the log once, and a long one is cut`() async throws {
        let log = LogRecorder()
        let server = try await RunningServer.start(log: log)
        let long = String(repeating: "x", count: 999)
        for host in ["evil.example", "evil.example", long] {
            _ = try await answer("GET /v1/config HTTP/1.1\r\nHost: \(host)\r\n\r\n", by: server)
        }
        try await server.stop()
        #expect(log.text.components(separatedBy: "evil.example").count == 2, "\(log.text)")
        #expect(log.text.contains("--host-name") && log.text.contains("--trusted-proxy"))
        #expect(
            !log.text.contains(String(long.prefix(101)))
                && log.text.contains(String(long.prefix(100))))
    }

    @Test func `whoever checks the server's health may name it as it likes`() async throws {
        try await withServer { server in
            let connection = try await RawConnection.open(server.port)
            for (path, status) in [("/health/live", "200 OK"), ("/v1/config", "421 ")] {
                await connection.send("GET \(path) HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n")
                try await connection.receive(status)
            }
        }
    }

    @Test(arguments: ["A:1", "localhost", "LocalHost:7717", "127.0.0.2:1", "[::1]:80", "b."])
    func `a server answers to its names and those of the machine`(host: String) async throws {
        try await withServer { server in
            let text = try await answer(
                "GET /v1/config HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n",
                by: server)
            #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        }
    }

    @Test func `on a loopback address without a proxy a page's own name is refused`() async throws {
        let proxy = try #require(AddressRange("127.0.0.1"))
        for (proxies, status) in [([], "421"), ([proxy], "200")] {
            try await withServer({
                $0.hostNames = []
                $0.trustedProxies = proxies
            }) { server in
                let request = Self.last.replacing("Host: a", with: "Host: evil.example")
                let text = try await answer(
                    request.replacing("/health/live", with: "/v1/config"), by: server)
                #expect(text.hasPrefix("HTTP/1.1 \(status) "))
            }
        }
    }

    @Test func `pages of an allowed origin may use the server, others may not`() async throws {
        try await withServer({ $0.allowedOrigins = ["https://notes.example"] }) { server in
            let device = try await server.newDevice()
            let credential = "Authorization: Bearer \(device.credential)\r\n"
            func head(_ line: String, from origin: String, _ fields: String = "") async throws
                -> String
            {
                try await answer(
                    "\(line) HTTP/1.1\r\nHost: a\r\nOrigin: \(origin)\r\n\(fields)"
                        + "Connection: close\r\n\r\n", by: server
                ).components(separatedBy: "\r\n\r\n")[0]
            }
            let (page, foreign) = ("https://notes.example", "https://evil.example")
            let asks = "Access-Control-Request-Method: POST\r\n"
            for path in ["/v1/stores/notes/changes", "/v1/sign-in"] {
                let asked = try await head("OPTIONS \(path)", from: page, asks).lowercased()
                #expect(asked.hasPrefix("http/1.1 204 "))
                #expect(asked.contains("access-control-allow-origin: https://notes.example\r\n"))
                #expect(asked.contains(#/access-control-allow-methods: [a-z, ]*post/#))
                #expect(
                    asked.contains(
                        "access-control-allow-headers: authorization, content-type, last-event-id, "
                            + "ubiquity-key-proof\r\n"))
            }
            for (path, fields, status) in [
                ("/v1/config", "", "200"), ("/v1/stores", credential, "200"),
                ("/v1/stores/notes/changes", credential, "200"), ("/v1/account", "", "401"),
                ("/v1/nothing", "", "404"),
            ] {
                let mine = try await head("GET \(path)", from: page, fields).lowercased()
                #expect(mine.hasPrefix("http/1.1 \(status) "))
                #expect(mine.contains("access-control-allow-origin: https://notes.example\r\n"))
                #expect(mine.contains("vary: origin"))
                let others = try await head("GET \(path)", from: foreign, fields).lowercased()
                #expect(others.hasPrefix("http/1.1 \(status) "))
                #expect(!others.contains("access-control") && others.contains("vary: origin"))
            }
        }
        try await withServer { server in
            let text = try await answer(
                Self.last.replacing("\r\nConn", with: "\r\nOrigin: https://a\r\nConn"), by: server)
            #expect(!text.lowercased().contains("access-control"))
        }
    }

    private func push(_ device: RunningDevice, _ fields: String) -> String {
        "POST /v1/stores/notes/changes HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n"
            + "Authorization: Bearer \(device.credential)\r\n\(fields)\r\n"
    }

    @Test func `a client that waits to be asked for a body is asked`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let connection = try await RawConnection.open(server.port)
            let body = "{}"
            await connection.send(
                push(device, "Content-Type: application/json\r\nContent-Length: 2\r\n"))
            #expect(
                try await connection.receive("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
            await connection.send(body + Self.last)
            let answers = try await connection.end().components(separatedBy: "HTTP/1.1 ")
                .dropFirst()
            #expect(answers.map { $0.prefix(3) } == ["100", "200", "200"])
        }
    }

    @Test func `a client that waits to be asked is refused by the head alone`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let json = "Content-Type: application/json\r\n"
            for (fields, status) in [
                ("Content-Length: 99999999\r\n" + json, "413"),
                ("Content-Length: 2\r\nContent-Type: text/xml\r\n", "415"),
                ("Content-Length: 2\r\nAccept: text/xml\r\n" + json, "406"),
            ] {
                let connection = try await RawConnection.open(server.port)
                await connection.send(push(device, fields))
                let text = try await connection.receive("\r\n\r\n")
                #expect(text.hasPrefix("HTTP/1.1 \(status) "), "\(text)")
                // There is no waiting for a body that is not sent.
                #expect(try await !connection.end().contains("100 Continue"))
            }
        }
    }

    @Test(arguments: WireFormat.allCases)
    func `without an Accept, a body is answered in its own form`(form: WireFormat) async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            var (push, transaction) = (WirePush(), WireTransaction())
            transaction.writes = [.write("a", "1")]
            push.transactions = [transaction]
            func answer(_ headers: [String: String]) async throws -> String? {
                try await server.send(
                    "POST", "/v1/stores/notes/changes", credential: device.credential,
                    body: form.encode(push),
                    headers: headers.merging(["Content-Type": form.rawValue]) { $1 }
                ).headers["content-type"]
            }
            #expect(try await answer([:]) == form.rawValue)
            for other in WireFormat.allCases {
                #expect(try await answer(["Accept": other.rawValue]) == other.rawValue)
            }
            #expect(try await answer(["Accept": "*/*"]) == WireFormat.json.rawValue)
        }
    }

    @Test func `OPTIONS of no address tells the methods of all`() async throws {
        try await withServer { server in
            let text = try await answer(
                "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", by: server)
            #expect(text.hasPrefix("HTTP/1.1 204 No Content\r\n"))
            #expect(text.contains("Allow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n"))
        }
    }

    @Test func `OPTIONS tells which methods there are`() async throws {
        try await withServer { server in
            let config = try await server.send("OPTIONS", "/v1/config")
            #expect(config.status == 204 && config.body.isEmpty)
            #expect(config.headers["allow"] == "GET, HEAD, OPTIONS")
            // RFC 9110, section 8.6.
            #expect(config.headers["content-length"] == nil)
            let changes = try await server.send("OPTIONS", "/v1/stores/notes/changes")
            #expect(changes.headers["allow"] == "GET, HEAD, OPTIONS, POST")
            #expect(try await server.send("OPTIONS", "/v1/nothing").status == 404)
            let other = try await server.send("PUT", "/v1/config")
            #expect(other.status == 405 && other.headers["allow"] == "GET, HEAD, OPTIONS")
        }
    }
}
