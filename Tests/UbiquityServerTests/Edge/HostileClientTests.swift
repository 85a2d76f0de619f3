// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

/// Clients that mean no good, each against a limit that is small enough to be met soon. One after
/// the other, for they mean to keep a machine busy.
@Suite(.serialized) struct HostileClientTests {
    private static let config = "GET /v1/config HTTP/1.1\r\nHost: a\r\n\r\n"

    private func withHostileServer(
        _ configure: (inout ServerSettings) -> Void = { _ in },
        _ body: (RunningServer) async throws -> Void
    ) async throws {
        try await withServer({
            $0.metricsPort = 0
            configure(&$0)
        }) { server in
            try await body(server)
            // Whatever happened: the next one is served as if nothing had.
            #expect(try await server.send("GET", "/health/live").status == 200)
        }
    }

    // MARK: - Slow writers

    @Test func `headers that come byte by byte are given up`() async throws {
        try await withHostileServer({ $0.constants.headSeconds = 1 }) { server in
            // On a busy machine, the second may be over before the first byte arrives, and then the
            // connection is closed without an answer.
            try await until("the answer") {
                let connection = try await RawConnection.open(server.port)
                await connection.send("GET /v1/config HTTP/1.1\r\nX: ")
                // Bytes that are sent after the end would make the system discard the answer.
                while connection.isOpen, connection.received.isEmpty {
                    await connection.send("a")
                    try await Task.sleep(for: .milliseconds(50))
                }
                return connection.received.hasPrefix("HTTP/1.1 408 Request Timeout\r\n")
            }
            #expect(try await server.count(of: "slow-head") >= 1)
        }
    }

    @Test func `a silent connection is closed`() async throws {
        try await withHostileServer({ $0.constants.headSeconds = 1 }) { server in
            let connection = try await RawConnection.open(server.port)
            #expect(try await connection.end().isEmpty)
            #expect(try await server.count(of: "slow-head") == 1)
        }
    }

    @Test func `a connection that asks for nothing more is closed`() async throws {
        try await withHostileServer({ $0.constants.idleConnectionSeconds = 1 }) { server in
            let connection = try await RawConnection.open(server.port)
            await connection.send(Self.config)
            #expect(try await connection.end().hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(try await server.count(of: "slow-head") == 0)
        }
    }

    @Test func `a body that trickles is given up`() async throws {
        try await withHostileServer({ $0.constants.slowSeconds = 1 }) { server in
            let device = try await server.newDevice()
            let connection = try await RawConnection.open(server.port)
            await connection.send(Self.push(device, "Content-Length: 100000"))
            while connection.isOpen {
                await connection.send("a")
                try await Task.sleep(for: .milliseconds(50))
            }
            #expect(try await connection.end().hasPrefix("HTTP/1.1 408 Request Timeout\r\n"))
            #expect(try await server.count(of: "slow-body") == 1)
        }
    }

    @Test func `a body that comes fast and never ends is given up`() async throws {
        try await withHostileServer({ $0.constants.bodySeconds = 1 }) { server in
            let device = try await server.newDevice()
            let connection = try await RawConnection.open(server.port)
            await connection.send(Self.push(device, "Content-Length: 8000000"))
            while connection.isOpen {
                await connection.send(String(repeating: "a", count: 1_024))
                try await Task.sleep(for: .milliseconds(10))
            }
            #expect(try await connection.end().hasPrefix("HTTP/1.1 408 Request Timeout\r\n"))
        }
    }

    private static func push(_ device: RunningDevice, _ length: String) -> String {
        "POST /v1/stores/notes/changes HTTP/1.1\r\nHost: a\r\n"
            + "Authorization: Bearer \(device.credential)\r\n"
            + "Content-Type: application/x-protobuf\r\n\(length)\r\n\r\n"
    }

    // MARK: - Too large

    @Test(arguments: [
        "GET /v1/config HTTP/1.1\r\nX: \(String(repeating: "a", count: 20_000))\r\n\r\n",
        "GET /\(String(repeating: "a", count: 200_000)) HTTP/1.1\r\n\r\n",
        "GET /v1/config HTTP/1.1\r\n"
            + (0..<100).map { "X\($0): a\r\n" }.joined() + "\r\n",
    ])
    func `an address or headers that are too large or too many are refused`(head: String)
        async throws
    {
        try await withHostileServer { server in
            let connection = try await RawConnection.open(server.port)
            connection.throwIn(head)
            let answer = try await connection.end()
            #expect(answer.hasPrefix("HTTP/1.1 431 Request Header Fields Too Large\r\n"))
            #expect(answer.contains("\"code\":\"header-too-large\""))
            #expect(try await server.count(of: "header-too-large") == 1)
        }
    }

    @Test func `an address that never ends is refused long before the memory does`() async throws {
        try await withHostileServer { server in
            let connection = try await RawConnection.open(server.port)
            await connection.send("GET /")
            var sent = 0
            while connection.isOpen, sent < 10_000 {
                await connection.send(String(repeating: "a", count: 1_024))
                sent += 1
            }
            #expect(try await connection.end().hasPrefix("HTTP/1.1 431 "))
            #expect(sent < 1_000)
        }
    }

    @Test(arguments: ["Content-Length: 1000000000", "Transfer-Encoding: chunked"])
    func `a body without end is refused at its limit, and not read on for long`(
        length: String
    ) async throws {
        try await withHostileServer({ $0.limits.pushBytesMax = 10_000 }) { server in
            let device = try await server.newDevice()
            let connection = try await RawConnection.open(server.port)
            await connection.send(Self.push(device, length))
            let chunk = "1000\r\n" + String(repeating: "a", count: 4_096) + "\r\n"
            while connection.isOpen {
                await connection.send(chunk)
                try await Task.sleep(for: .milliseconds(5))
            }
            let answer = try await connection.end()
            #expect(answer.hasPrefix("HTTP/1.1 413 "))
            #expect(answer.contains("\"code\":\"body-too-large\""))
            #expect(try await server.count(of: "body-too-large") == 1)
        }
    }

    @Test func `bodies of all requests together have a limit`() async throws {
        try await withHostileServer({ $0.buffersBytesMax = 300_000 }) { server in
            let device = try await server.newDevice()
            let greedy = try await RawConnection.open(server.port)
            await greedy.send(
                Self.push(device, "Content-Length: 60000")
                    + String(repeating: "a", count: 45_000))
            try await until("the body") {
                try await server.metrics().contains("ubiquity_body_bytes 45000\n")
            }
            let answer = try await device.push([.write("a", String(repeating: "a", count: 9_000))])
            #expect(answer.status == 503)
            #expect(answer.headers["retry-after"] == "1")
            #expect(try await server.count(of: "bodies-in-memory") == 1)
            greedy.close()
            try await until("the room") {
                try await server.metrics().contains("ubiquity_body_bytes 0\n")
            }
            #expect(
                try await device.push([.write("a", String(repeating: "a", count: 9_000))]).status
                    == 200)
        }
    }

    @Test(arguments: [
        "\u{16}\u{3}\u{1}\0\0\0\0\0", "\0\0\0\0", "hello\r\n\r\n", "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ])
    func `input that is not HTTP is answered, and the connection ends`(bytes: String) async throws {
        try await withHostileServer { server in
            let connection = try await RawConnection.open(server.port)
            await connection.send(bytes)
            let answer = try await connection.end()
            #expect(answer.hasPrefix("HTTP/1.1 400 ") || answer.hasPrefix("HTTP/1.1 404 "))
            #expect(answer.contains("application/problem+json"))
        }
    }

    // MARK: - Too many

    @Test func `of a flood of requests in one breath, the first are answered`() async throws {
        try await withHostileServer { server in
            let connection = try await RawConnection.open(server.port)
            connection.throwIn(String(repeating: Self.config, count: 2_000))
            let answers = try await connection.end().components(separatedBy: "HTTP/1.1 200 ")
                .dropFirst()
            #expect(answers.count >= 16)
            let last = answers.lastIndex { $0.lowercased().contains("connection: close") }
            #expect(last == answers.indices.last)
            #expect(try await server.count(of: "pipelined-requests") == 1)
        }
    }

    /// The decoder reads nothing after it, so whoever shares the connection would wait for ever.
    @Test(arguments: [
        "GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        "GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            + "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n"
            + "Content-Length: 2\r\n\r\nhi",
    ])
    func `a request for another protocol is the last of its connection`(
        _ request: String
    ) async throws {
        try await withHostileServer { server in
            let connection = try await RawConnection.open(server.port)
            await connection.send(request)
            await connection.send(Self.config)
            let answers = try await connection.end()
            #expect(answers.lowercased().contains("\r\nconnection: close\r\n"), "\(answers)")
            #expect(answers.components(separatedBy: "HTTP/1.1 ").count == 2, "\(answers)")
            #expect(!answers.contains("408"), "\(answers)")
        }
    }

    @Test func `a few requests in one breath are answered in their order`() async throws {
        try await withHostileServer { server in
            let connection = try await RawConnection.open(server.port)
            await connection.send(
                Self.config + "GET /v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n"
                    + "GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            let answers = try await connection.end().components(separatedBy: "HTTP/1.1 ")
                .dropFirst()
            #expect(answers.map { $0.prefix(3) } == ["200", "404", "200"])
        }
    }

    /// An answer of more than a piece is sent as the other side reads it.
    @Test func `requests behind a large answer are answered in their order`() async throws {
        try await withHostileServer { server in
            let device = try await server.newDevice()
            for number in 0..<8 {
                try await device.set("key \(number)", String(repeating: "x", count: 40_000))
            }
            let head = "Host: a\r\nAuthorization: Bearer \(device.credential)\r\n"
            let read = "GET /v1/stores/notes/changes HTTP/1.1\r\n\(head)\r\n"
            for _ in 0..<20 {
                let connection = try await RawConnection.open(server.port)
                await connection.send(
                    read + "GET /v1/stores HTTP/1.1\r\n\(head)\r\n" + read
                        + "GET /v1/nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                let answers = try await connection.end().components(separatedBy: "HTTP/1.1 ")
                    .dropFirst()
                #expect(answers.map { $0.prefix(3) } == ["200", "200", "200", "404"])
                #expect(answers.map { $0.contains("xxxx") } == [true, false, true, false])
            }
        }
    }

    @Test func `one connection too many is told so, and later ones are welcome`() async throws {
        try await withHostileServer({ $0.connectionsMax = 3 }) { server in
            var held: [RawConnection] = []
            for _ in 0..<3 {
                let connection = try await RawConnection.open(server.port)
                await connection.send(Self.config)
                try await connection.receive("200 OK")
                held.append(connection)
            }
            let extra = try await RawConnection.open(server.port)
            await extra.send(Self.config)
            let answer = try await extra.end()
            #expect(answer.hasPrefix("HTTP/1.1 503 "))
            #expect(answer.contains("Retry-After: 5\r\n"))
            #expect(answer.contains("X-Content-Type-Options: nosniff\r\n"))
            for connection in held { connection.close() }
            try await until("room") {
                let next = try await RawConnection.open(server.port)
                await next.send("GET /v1/config HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                return try await next.end().hasPrefix("HTTP/1.1 200")
            }
            #expect(try await server.count(of: "connections") >= 1)
        }
    }

    @Test func `a thousand connections at once leave few, and the server well`() async throws {
        try await withHostileServer({ $0.connectionsPerAddressMax = 20 }) { server in
            let connections = try await withThrowingTaskGroup(of: RawConnection.self) { group in
                for _ in 0..<1_000 {
                    group.addTask { try await RawConnection.open(server.port) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            for connection in connections { connection.throwIn(Self.config) }
            try await until("the answers") {
                connections.allSatisfy { $0.received.contains("HTTP/1.1 ") || !$0.isOpen }
            }
            let served = connections.count { $0.received.hasPrefix("HTTP/1.1 200") }
            let refused = connections.count { $0.received.hasPrefix("HTTP/1.1 429") }
            #expect(served == 20)
            #expect(refused >= 900)
            for connection in connections { connection.close() }
            try await until("the end of all") {
                let metrics = try await server.metrics()
                return (0...1).contains { metrics.contains("ubiquity_connections \($0)\n") }
            }
        }
    }

    @Test func `an address that asks too often is told when to come again`() async throws {
        try await withServer({ $0.requestAllowance = .init(burst: 3, perSecond: 0.1) }) { server in
            for _ in 0..<3 { #expect(try await server.send("GET", "/v1/config").status == 200) }
            let answer = try await server.send("GET", "/v1/config")
            #expect(answer.status == 429)
            #expect(try answer.problem.code == "too-many-requests")
            #expect(answer.headers["retry-after"].flatMap { Int($0) } ?? 0 >= 9)
            let forwarded = try await server.send(
                "GET", "/v1/config", headers: ["X-Forwarded-For": "192.0.2.1"])
            #expect(forwarded.status == 429, "nobody believes a stranger")
        }
    }

    @Test func `somebody who guesses codes is told when to come again`() async throws {
        try await withHostileServer({ $0.signInAllowance = .init(burst: 2, perSecond: 0.1) }) {
            server in
            for _ in 0..<2 {
                #expect(try await server.signIn(code: "AAAA-BBBB-CCCC").status == 401)
            }
            let answer = try await server.signIn(code: "AAAA-BBBB-CCCC")
            #expect(answer.status == 429)
            #expect(answer.headers["retry-after"].flatMap { Int($0) } ?? 0 >= 9)
            #expect(try await server.count(of: "sign-in-attempts") == 1)
            #expect(try await server.count(of: "requests-per-address") == 0)
        }
    }

    @Test func `behind a trusted proxy each client has its own allowance`() async throws {
        try await withServer({
            $0.requestAllowance = .init(burst: 1, perSecond: 0.1)
            $0.trustedProxies = [AddressRange("127.0.0.0/8")!]
        }) { server in
            let expected = [
                ("192.0.2.1", 200), ("198.51.100.9, 192.0.2.1", 429), ("192.0.2.2", 200),
            ]
            for (forwarded, status) in expected {
                let answer = try await server.send(
                    "GET", "/v1/config", headers: ["X-Forwarded-For": forwarded])
                #expect(answer.status == status, "\(forwarded)")
            }
        }
    }

    // MARK: - Slow readers

    @Test func `a client that never reads its answers is dropped`() async throws {
        try await withHostileServer({
            $0.constants.slowSeconds = 1
            $0.constants.answerBytesPerSecondMin = 1 << 17
        }) { server in
            let device = try await server.newDevice()
            try await Self.fill(device)
            let connection = try await RawConnection.open(server.port, reads: false)
            // More than the system keeps for a connection.
            connection.throwIn(String(repeating: Self.pull(device), count: 8))
            try await until("the end of the answers") {
                try await server.count(of: "slow-reader") == 1
            }
            try await until("the memory") {
                try await server.metrics().contains("ubiquity_answer_bytes 0\n")
            }
            connection.close()
        }
    }

    /// Until nothing moves any more. To ask for a store meanwhile would take room from those that
    /// are to wait.
    private func untilAnswersWait(_ server: RunningServer) async throws {
        var (last, times): (Substring?, Int) = (nil, 0)
        try await until("the answers that wait") {
            let line = try await server.metrics().split(separator: "\n")
                .first { $0.hasPrefix("ubiquity_answer_bytes ") }
            times = line == last && line?.hasSuffix(" 0") == false ? times + 1 : 0
            last = line
            return times == 100
        }
    }

    @Test func `while too much waits to be read, no further store is read`() async throws {
        try await withHostileServer({ $0.buffersBytesMax = 300_000 }) { server in
            let device = try await server.newDevice()
            // The budget of bodies is small too.
            for number in 0..<25 {
                try await device.set("k\(number)", String(repeating: "x", count: 40_000))
            }
            let connection = try await RawConnection.open(server.port, reads: false)
            connection.throwIn(String(repeating: Self.pull(device), count: 8))
            try await untilAnswersWait(server)
            #expect(try await device.pull().status == 503)
            #expect(try await device.pull().headers["retry-after"] == "1")
            #expect(try await server.count(of: "answers-in-memory") >= 2)
            connection.close()
            try await until("the room") { try await device.pull().status == 200 }
        }
    }

    @Test func `an account that does not read keeps no other from reading`() async throws {
        try await withHostileServer({ $0.buffersBytesMax = 24 << 20 }) { server in
            let (device, other) = (
                try await server.newDevice(), try await server.newDevice(account: "bob")
            )
            try await Self.fill(device)
            try await Self.fill(other)
            var connections: [RawConnection] = []
            for _ in 0..<12 {
                let connection = try await RawConnection.open(server.port, reads: false)
                connection.throwIn(Self.pull(device))
                connections.append(connection)
            }
            try await untilAnswersWait(server)
            #expect(try await device.pull().status == 503)
            for _ in 0..<3 { #expect(try await other.pull().status == 200) }
            for connection in connections { connection.close() }
            try await until("the room") { try await device.pull().status == 200 }
            try await until("the memory") {
                try await server.metrics().contains("ubiquity_answer_bytes 0\n")
            }
        }
    }

    @Test func `a confined device has a share of its account's streams`() async throws {
        // The tests' client has eight connections to a server at most.
        try await withHostileServer({ $0.streamsPerAccountMax = 4 }) { server in
            let device = try await server.newDevice()
            let app = try await server.furtherDevice(stores: ["notes"])
            var streams = [try await server.listen(app)]
            #expect(try await server.listen(app).status == 429)
            for _ in 0..<3 { streams.append(try await server.listen(device)) }
            #expect(streams.allSatisfy { $0.status == 200 })
            #expect(try await server.listen(device).status == 429)
        }
    }

    @Test func `all confined devices of an account have one share of its streams`() async throws {
        try await withHostileServer({ $0.streamsPerAccountMax = 8 }) { server in
            let device = try await server.newDevice()
            var streams: [EventReader] = []
            for _ in 0..<2 {
                let app = try await server.furtherDevice(stores: ["notes"])
                streams.append(try await server.listen(app))
            }
            let third = try await server.furtherDevice(stores: ["notes", "other"])
            #expect(try await server.listen(third).status == 429)
            streams.append(try await server.listen(device))
            #expect(streams.allSatisfy { $0.status == 200 })
        }
    }

    @Test func `a store whose values cannot be read fails what reads it, and is counted`()
        async throws
    {
        let folder = try TemporaryFolder()
        try await withServer(in: folder, { $0.metricsPort = 0 }) { server in
            let (device, other) = (
                try await server.newDevice(), try await server.newDevice(account: "bob")
            )
            try await device.set("a", "x")
            try await device.set("a", "x", store: "other")
            try await other.set("a", "x")
            let queue = try DatabaseQueue(path: folder.file("data/ubiquity.sqlite"))
            try await queue.write { db in
                try db.execute(
                    sql: """
                        UPDATE record SET value = x'FF' WHERE key <> x'' AND store IN
                            (SELECT id FROM store WHERE account = ? AND identifier = 'notes')
                        """, arguments: [device.account])
            }
            #expect(try await device.pull().status == 503)
            #expect(try await server.listen(device).status == 503)
            #expect(try await device.pull(store: "other").status == 200)
            #expect(try await other.pull().status == 200)
            #expect(try await server.metrics().contains("ubiquity_unreadable_total 2\n"))
        }
    }

    @Test func `a stream that nobody reads is ended, and its memory given back`() async throws {
        try await withHostileServer({
            $0.constants.slowSeconds = 1
            $0.constants.answerBytesPerSecondMin = 1 << 17
            $0.constants.streamBufferBytesMax = 1 << 20
            $0.allowance = .init(burst: 10_000, perSecond: 1_000)
        }) { server in
            let device = try await server.newDevice()
            let connection = try await RawConnection.open(server.port, reads: false)
            connection.throwIn(
                Self.pull(device).replacingOccurrences(
                    of: "application/x-protobuf", with: "text/event-stream"))
            try await until("the stream") {
                try await server.metrics().contains("ubiquity_listeners 1\n")
            }
            var rounds = 0
            while try await server.metrics().contains("ubiquity_listeners 1\n"), rounds < 200 {
                try await device.set("big", String(repeating: "\(rounds % 10)", count: 500_000))
                rounds += 1
            }
            #expect(rounds < 200)
            try await until("the memory") {
                let metrics = try await server.metrics()
                return metrics.contains("ubiquity_listener_bytes 0\n")
                    && metrics.contains("ubiquity_answer_bytes 0\n")
            }
            connection.close()
        }
    }

    private static func fill(_ device: RunningDevice) async throws {
        let answer = try await device.push([.write("a", String(repeating: "x", count: 1_000_000))])
        #expect(answer.status == 200)
    }

    private static func pull(_ device: RunningDevice) -> String {
        "GET /v1/stores/notes/changes HTTP/1.1\r\nHost: a\r\n"
            + "Authorization: Bearer \(device.credential)\r\n"
            + "Accept: application/x-protobuf\r\n\r\n"
    }

    // MARK: - Half of a connection

    @Test func `a client that stops sending after its request gets its answer`() async throws {
        try await withHostileServer { server in
            let connection = try await RawConnection.open(server.port)
            await connection.send(Self.config)
            try await connection.endInput()
            #expect(try await connection.end().hasPrefix("HTTP/1.1 200 OK\r\n"))
        }
    }

    @Test func `a client that stops sending in the middle of its request is dropped`() async throws
    {
        try await withHostileServer { server in
            let device = try await server.newDevice()
            for part in ["GET /v1/con", Self.push(device, "Content-Length: 100") + "aaa"] {
                let connection = try await RawConnection.open(server.port)
                await connection.send(part)
                try await connection.endInput()
                _ = try await connection.end()
            }
        }
    }
}
