// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// One stream of several stores.
struct SharedStreamTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let body = #"{"stores":[{"identifier":"a"},{"identifier":"b"}]}"#

    private static func request(
        _ device: RunningDevice, _ body: String = body, version: String = "1.1"
    ) -> String {
        "POST /v1/changes HTTP/\(version)\r\nHost: a\r\nAuthorization: Bearer \(device.credential)\r\n"
            + "Content-Type: application/json\r\nAccept: text/event-stream\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private func expect(_ titles: String..., from stream: inout EventReader) async throws {
        for title in titles { #expect(try await stream.nextEvent()?.title == title) }
    }

    // MARK: - What it brings

    @Test(arguments: Backend.allCases, WireFormat.allCases)
    func `a stream brings one store after the other, then each push with its store`(
        backend: Backend, format: WireFormat
    ) async throws {
        let database = backend == .sqlite ? nil : try PostgresDatabase(in: folder).settings()
        let operatorCredential = try database.map(OperatorCredential.renew)
        try await withServer(in: folder, { $0.database = database }) { server in
            if let operatorCredential {
                // A node with a database keeps none in its folder.
                try FileManager.default.createDirectory(
                    atPath: folder.file("data"), withIntermediateDirectories: true)
                try Data(operatorCredential.utf8).write(
                    to: URL(fileURLWithPath: folder.file("data/operator-credential")))
            }
            let device = try await server.newDevice()
            try await device.set("x", "1", store: "full")
            let first = try await device.set("x", "1", store: "behind").cursor
            try await device.set("y", "1", store: "behind")
            let last = try await device.set("x", "1", store: "current").cursor
            var stream = try await server.listen(
                device,
                stores: [
                    .init("full"), .init("empty"), .init("behind", since: first),
                    .init("current", since: last),
                ], format)
            #expect(stream.status == 200)
            #expect(stream.headers["content-type"] == "text/event-stream")
            let whole = try #require(try await stream.nextEvent())
            #expect(try whole.title == "changes full" && whole.keys == ["x"])
            #expect(try whole.changes.whole && whole.id == nil)
            let ready = try #require(try await stream.nextEvent())
            let message = try WireFormat.json.decode(WireReady.self, from: Array(ready.data.utf8))
            #expect(try message.store == "full" && message.cursor == whole.changes.cursor)
            #expect(message.config.limits.keysMax == 1_024)
            try await expect("changes empty", "ready empty", from: &stream)
            let rest = try #require(try await stream.nextEvent())
            #expect(try rest.title == "changes behind" && rest.keys == ["y"])
            #expect(try !rest.changes.whole)
            try await expect("ready behind", "ready current", from: &stream)
            for (number, store) in ["current", "empty", "full", "current"].enumerated() {
                let cursor = try await device.set("key\(number)", "1", store: store).cursor
                let event = try #require(try await stream.nextEvent())
                #expect(try event.title == "changes \(store)" && event.keys == ["key\(number)"])
                #expect(try event.changes.cursor == cursor)
            }
        }
    }

    @Test func `events of all sizes name their store, in either form`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            var plain = try await server.listen(device, store: "a")
            for _ in ["changes", "ready"] { _ = try await plain.nextEvent() }
            let stores: [WireNewStream.Store] = [.init("a"), .init("b")]
            var text = try await server.listen(device, stores: stores)
            var binary = try await server.listen(
                device, stores: stores, accept: "text/event-stream;events=binary")
            for _ in 1...4 { _ = try await (text.nextEvent(), binary.nextEvent()) }
            // Small enough for the binary form, for a loop, and for neither.
            for count in [1, 2_000, 20_000] {
                try await device.set("k", String(repeating: "x", count: count), store: "a")
                let event = try #require(try await text.nextEvent())
                #expect(try event.title == "changes a" && event.keys == ["k"])
                let packed = try #require(try await binary.nextEvent())
                #expect(try packed.title == (count == 1 ? "binary a" : "changes a"))
                // The others' events name none, and are the same otherwise.
                let alone = try #require(try await plain.nextEvent())
                #expect(!alone.data.contains("\"store\""))
                var message = try event.changes
                message.store = ""
                #expect(try alone.changes == message)
            }
        }
    }

    @Test func `a stream comes to HTTP 1.0 without chunks`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let connection = try await RawConnection.open(server.port)
            await connection.send(Self.request(device, version: "1.0"))
            try await connection.receive("\"store\":\"b\"}\n\nevent: ready\n")
            try await device.set("k", String(repeating: "x", count: 20_000), store: "b")
            let text = try await connection.receive("xxx\"}")
            #expect(text.hasPrefix("HTTP/1.0 200 OK\r\n"))
            #expect(text.contains("\n\nevent: changes\ndata: {\"store\":\"b\",\"records\":["))
            try await connection.receive("\"}\n\n")
            #expect(!connection.received.contains("\n\r\n5"))
            connection.close()
        }
    }

    @Test func `the stream of one store is as it was`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let cursor = try await device.set("a", "1").cursor
            let connection = try await RawConnection.open(server.port)
            await connection.send(
                "GET /v1/stores/notes/changes HTTP/1.1\r\nHost: a\r\n"
                    + "Authorization: Bearer \(device.credential)\r\n"
                    + "Accept: text/event-stream\r\n\r\n")
            try await connection.receive("ready")
            let next = try await device.set("b", "1").cursor
            let text = try await connection.receive(next)
            let events = try Regex(
                #"\r\n\r\n[0-9a-f]+\r\nevent: changes\nid: (\S+)\ndata: (\{\S+\})\n\n\r\n"#
                    + #"[0-9a-f]+\r\nevent: ready\ndata: (\{\S+\})\n\n\r\n"#,
                as: (Substring, Substring, Substring, Substring).self)
            let found = try #require(try events.firstMatch(in: text))
            #expect(found.1 == cursor)
            #expect(found.2.hasPrefix(#"{"records":[{"key":"a","#))
            #expect(found.2.contains("],\"cursor\":\"\(cursor)\",\"serverMilliseconds\":"))
            #expect(found.2.hasSuffix("\",\"whole\":true}"))
            #expect(found.3.hasPrefix("{\"cursor\":\"\(cursor)\",\"config\":{"))
            #expect(found.3.hasSuffix("}}"))
            #expect(text.contains("\r\nevent: changes\ndata: {\"records\":[{\"key\":\"b\","))
            #expect(text.contains("\"cursor\":\"\(next)\"}\n\n\r\n"))
            connection.close()
        }
    }

    @Test func `what a device says it has saved counts, for each store`() async throws {
        try await withServer { server in
            let writer = try await server.newDevice()
            let reader = try await server.furtherDevice()
            var cursors: [String] = []
            for store in ["one", "two", "three"] {
                cursors.append(try await writer.set("a", "1", store: store).cursor)
            }
            var stream = try await server.listen(
                reader,
                stores: [
                    .init("one", since: cursors[0]), .init("two", since: cursors[1], saved: false),
                    .init("three", since: cursors[2], saved: true),
                ])
            try await expect("ready one", "ready two", "ready three", from: &stream)
            for (store, isCurrent) in [("one", true), ("two", false), ("three", true)] {
                let list = try await writer.get("/v1/stores/\(store)/devices")
                    .message(WireDeliveries.self)
                let delivery = list.deliveries.first { $0.device.id == reader.id }
                #expect(delivery?.isCurrent == isCurrent, "\(store)")
            }
        }
    }

    // MARK: - What ends one store, or all

    @Test func `a store that cannot be opened ends, and the others go on`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let foreign = try await device.set("a", "1", store: "three").cursor
            var stream = try await server.listen(
                device,
                stores: [
                    .init("one", since: "0123456789abcdef-1"), .init("two"),
                    .init("four", since: foreign),
                ])
            let end = try #require(try await stream.nextEvent())
            #expect(try end.title == "ended one")
            #expect(try end.problem.code == "cursor-other-history" && end.problem.status == 410)
            try await expect("changes two", "ready two", "ended four", from: &stream)
            // Nothing of the one that ended comes any more.
            try await device.set("a", "1", store: "one")
            try await device.set("b", "1", store: "two")
            #expect(try await stream.nextEvent()?.keys == ["b"])
            // What was only read does not exist.
            let stores = try await device.get("/v1/stores").message(WireStoreList.self).stores
            #expect(stores.map(\.identifier) == ["one", "three", "two"])
        }
    }

    @Test func `a stream of stores none of which can be opened ends`() async throws {
        try await withServer { server in
            _ = try await server.newDevice()
            let app = try await server.furtherDevice(stores: ["own"])
            var stream = try await server.listen(
                app, stores: [.init("one"), .init("own", since: "0123456789abcdef-1")])
            #expect(stream.status == 200)
            let end = try #require(try await stream.nextEvent())
            #expect(try end.title == "ended one" && end.problem.code == "not-yours")
            try await expect("ended own", from: &stream)
            #expect(try await stream.next() == nil)
        }
    }

    @Test func `each store counts as a stream, and the place of one that ends is free`()
        async throws
    {
        try await withServer({
            $0.streamsPerAccountMax = 2
            $0.metricsPort = 0
        }) { server in
            let device = try await server.newDevice()
            var stream = try await server.listen(
                device,
                stores: ["one", "two", "three"].map { .init($0) } + [
                    .init("four", since: "0123456789abcdef-1")
                ])
            try await expect("changes one", "ready one", "changes two", "ready two", from: &stream)
            for store in ["three", "four"] {
                let end = try #require(try await stream.nextEvent())
                #expect(try end.title == "ended \(store)")
                #expect(
                    try end.problem.code == "too-many-streams"
                        && end.problem.retryAfterSeconds == 30)
            }
            #expect(try await server.metrics().contains("ubiquity_listeners 2\n"))
            #expect(try await server.count(of: "listeners-per-account") == 2)
            #expect(try await server.listen(device).status == 429)
            withExtendedLifetime(stream) {}
        }
        try await withServer({ $0.streamsPerAccountMax = 1 }) { server in
            let device = try await server.newDevice()
            var stream = try await server.listen(
                device, stores: [.init("one", since: "0123456789abcdef-1"), .init("two")])
            try await expect("ended one", "changes two", "ready two", from: &stream)
        }
    }

    @Test func `a revoked credential ends all stores, and only its own`() async throws {
        try await withServer { server in
            let first = try await server.newDevice()
            let lost = try await server.furtherDevice()
            let stores: [WireNewStream.Store] = [.init("one"), .init("two")]
            var own = try await server.listen(first, stores: stores)
            var stream = try await server.listen(lost, stores: stores)
            for _ in 1...4 { _ = try await (own.nextEvent(), stream.nextEvent()) }
            let revoked = try await server.send(
                "DELETE", "/v1/devices/\(lost.id)", credential: first.credential)
            #expect(revoked.status == 204)
            #expect(try await stream.nextEvent() == nil)
            #expect(try await server.listen(lost, stores: stores).status == 401)
            try await first.set("a", "1", store: "two")
            #expect(try await own.nextEvent()?.keys == ["a"])
        }
    }

    @Test(arguments: [0, 1]) func `a server that stops ends the stream`(drainSeconds: Int64)
        async throws
    {
        let server = try await RunningServer.start { $0.drainSeconds = drainSeconds }
        let device = try await server.newDevice()
        var stream = try await server.listen(device, stores: [.init("one"), .init("two")])
        try await expect("changes one", "ready one", "changes two", "ready two", from: &stream)
        try await server.stop()
        #expect(try await stream.nextEvent() == nil)
    }

    // MARK: - Clients that mean no good

    @Test func `a client that does not read gets one store after the other, and no memory`()
        async throws
    {
        try await withServer({
            $0.metricsPort = 0
            $0.constants.slowSeconds = 3_600
            $0.allowance = .init(burst: 10_000)
        }) { server in
            let device = try await server.newDevice()
            let value = String(repeating: "x", count: 1_000_000)
            let stores = (0..<12).map { "s\($0)" }
            for store in stores { try await device.set("a", value, store: store) }
            let connection = try await RawConnection.open(server.port, reads: false)
            let list = stores.map { "{\"identifier\":\"\($0)\"}" }.joined(separator: ",")
            connection.throwIn(Self.request(device, "{\"stores\":[\(list)]}"))
            // What the system has taken for the connection is sent.
            var (last, times) = ("", 0)
            try await until("the beginning that waits") {
                let lines = try await server.metrics().split(separator: "\n").filter {
                    $0.hasPrefix("ubiquity_answer_bytes ") || $0.hasPrefix("ubiquity_listeners ")
                }.joined()
                times = lines == last && !lines.contains("bytes 0") ? times + 1 : 0
                last = lines
                return times == 100
            }
            let bytes = Int(last.firstMatch(of: /bytes (\d+)/)?.1 ?? "") ?? .max
            #expect(bytes < 1_200_000, "\(last)")
            connection.close()
            try await until("the memory") {
                let metrics = try await server.metrics()
                return metrics.contains("ubiquity_listeners 0\n")
                    && metrics.contains("ubiquity_answer_bytes 0\n")
            }
        }
    }

    @Test func `a store whose events wait for too long ends alone`() async throws {
        try await withServer({
            $0.metricsPort = 0
            $0.constants.slowSeconds = 3_600
            $0.constants.streamBufferBytesMax = 1 << 20
            $0.allowance = .init(burst: 10_000)
        }) { server in
            let device = try await server.newDevice()
            let connection = try await RawConnection.open(server.port, reads: false)
            connection.throwIn(Self.request(device))
            try await until("the stream") {
                try await server.metrics().contains("ubiquity_listeners 2\n")
            }
            let value = PropertyListValue.data(Array(repeating: 7, count: 500_000))
            var pushes = 0
            while try await server.count(of: "listener-overflow") == 0, pushes < 40 {
                #expect(
                    try await device.push([.write("k", value)], store: "a", .protobuf).status == 200
                )
                pushes += 1
            }
            #expect(pushes < 40)
            try await device.set("last", "1", store: "b")
            try await connection.readOn()
            let text = try await connection.receive("{\"key\":\"last\"")
            #expect(text.contains("event: resync\ndata: {\"store\":\"a\"}\n\n"))
            #expect(try await server.metrics().contains("ubiquity_listeners 1\n"))
            connection.close()
            try await until("the memory") {
                let metrics = try await server.metrics()
                return metrics.contains("ubiquity_listeners 0\n")
                    && metrics.contains("ubiquity_listener_bytes 0\n")
            }
        }
    }

    @Test func `a body that trickles, or ends too early, opens nothing`() async throws {
        try await withServer({
            $0.metricsPort = 0
            $0.constants.slowSeconds = 1
        }) { server in
            let device = try await server.newDevice()
            let half = String(Self.request(device).dropLast(20))
            let slow = try await RawConnection.open(server.port)
            await slow.send(half)
            #expect(try await slow.end().hasPrefix("HTTP/1.1 408 "))
            let cut = try await RawConnection.open(server.port)
            await cut.send(half)
            // A slow test finds it closed.
            try? await cut.endInput()
            _ = try await cut.end()
            #expect(try await server.metrics().contains("ubiquity_listeners 0\n"))
        }
    }

    @Test func `a request of another form is refused, and stores nothing`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            func status(
                _ body: String, _ accept: String = "text/event-stream",
                _ type: String = "application/json", method: String = "POST"
            ) async throws -> String {
                let answer = try await server.send(
                    method, "/v1/changes", credential: device.credential, body: Array(body.utf8),
                    headers: ["Accept": accept, "Content-Type": type])
                return try "\(answer.status) \(answer.problem.code)"
            }
            func named(_ stores: Int) -> String {
                let stores = (0..<stores).map { "{\"identifier\":\"s\($0)\"}" }
                return "{\"stores\":[\(stores.joined(separator: ","))]}"
            }
            for body in [
                "", "{}", "[]", "{\"stores\":[]}", "{\"stores\":[{}]}", named(65),
                #"{"stores":[{"identifier":"a"},{"identifier":"b"},{"identifier":"a"}]}"#,
                #"{"stores":[{"identifier":".a"}]}"#,
                #"{"stores":[{"identifier":"a","since":"x"}]}"#,
                #"{"stores":[{"identifier":"a","saved":"x"}]}"#,
                "{\"x\":[\(String(repeating: "1,", count: 2_000))1]}",
            ] { #expect(try await status(body) == "400 malformed", "\(body.prefix(80))") }
            #expect(
                try await status("{\"x\":\"\(String(repeating: "x", count: 40_000))\"}")
                    == "413 body-too-large")
            for accept in ["application/json", "*/*"] {
                #expect(try await status(named(1), accept) == "406 not-acceptable")
            }
            #expect(
                try await status(named(1), "text/event-stream", "text/plain")
                    == "415 unsupported-media-type")
            #expect(try await status("", method: "GET") == "405 method-not-allowed")
            let stranger = try await server.send(
                "POST", "/v1/changes", body: Array(named(1).utf8),
                headers: ["Accept": "text/event-stream", "Content-Type": "application/json"])
            #expect(stranger.status == 401)
            let head = try await server.send("HEAD", "/v1/changes", credential: device.credential)
            #expect(head.status == 405 && head.headers["allow"] == "OPTIONS, POST")
            let options = try await server.send("OPTIONS", "/v1/changes")
            #expect(options.status == 204 && options.headers["allow"] == "OPTIONS, POST")
            let stores = try await device.get("/v1/stores").message(WireStoreList.self).stores
            #expect(stores.isEmpty)
            // As many as there may be, with the longest names.
            let long = (0..<64).map { number in
                WireNewStream.Store(String(repeating: "x", count: 252) + "\(100 + number)")
            }
            for format in WireFormat.allCases {
                #expect(try await server.listen(device, stores: long, format).status == 200)
            }
        }
    }
}
