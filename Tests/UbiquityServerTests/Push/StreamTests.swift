// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

struct StreamTests {
    @Test func `a stream tells the whole store, then that it is ready, then each push`()
        async throws
    {
        try await withServer { server in
            let device = try await server.newDevice()
            try await device.set("a", "1")
            var stream = try await server.listen(device)
            #expect(stream.status == 200)
            #expect(stream.headers["content-type"] == "text/event-stream")
            #expect(stream.headers["cache-control"] == "no-store")
            let whole = try #require(try await stream.nextEvent())
            #expect(whole.name == "changes")
            #expect(try whole.changes.whole)
            #expect(try whole.keys == ["a"])
            let ready = try #require(try await stream.nextEvent())
            #expect(ready.name == "ready")
            let message = try WireFormat.json.decode(WireReady.self, from: Array(ready.data.utf8))
            #expect(message.cursor == whole.id)
            #expect(message.config.limits.keysMax == 1_024)
            for key in ["b", "c", "d"] {
                let cursor = try await device.set(key, "1").cursor
                let event = try #require(try await stream.nextEvent())
                #expect(try event.keys == [key])
                #expect(try event.changes.cursor == cursor)
                // A listener already knows the server's time, and the cursor is included only once.
                #expect(event.id == nil)
                #expect(try event.changes.serverMilliseconds == 0)
            }
        }
    }

    @Test func `a small push comes in the binary form to who takes it, and says the same`()
        async throws
    {
        try await withServer { server in
            let device = try await server.newDevice()
            var text = try await server.listen(device)
            var binary = try await server.listen(
                device, accept: "text/html, text/event-stream; Events=Binary")
            for _ in ["changes", "ready"] {
                _ = try await (text.nextEvent(), binary.nextEvent())
            }
            try await device.set("small", "1")
            let (plainEvent, packed) = try await (text.nextEvent(), binary.nextEvent())
            #expect(plainEvent?.name == "changes" && packed?.name == "binary")
            let bytes = try #require(Data(base64Encoded: packed?.data ?? ""))
            #expect(
                try WireFormat.protobuf.decode(WireChanges.self, from: bytes) == plainEvent?.changes
            )
            try await device.set("large", String(repeating: "x", count: 1_024))
            let events = try await [text.nextEvent(), binary.nextEvent()]
            #expect(events[0] == events[1] && events[0]?.name == "changes")
        }
    }

    @Test func `pulls and streams both say up to where tombstones are compacted`()
        async throws
    {
        try await withServer({ $0.constants.deletionsPerStoreMax = 1 }) { server in
            let device = try await server.newDevice()
            for key in ["a", "b", "c"] {
                try await device.set(key, "1")
                _ = try await device.push([.write(key, nil as PropertyListValue?)])
            }
            try await until("the server has forgotten deletions") {
                try await device.pull().message(WireChanges.self).horizonMilliseconds > 0
            }
            var stream = try await server.listen(device)
            let whole = try #require(try await stream.nextEvent())
            #expect(try whole.changes.horizonMilliseconds > 0)
            _ = try await stream.nextEvent()
            try await device.set("d", "1")
            let pushed = try #require(try await stream.nextEvent())
            #expect(try pushed.changes.horizonMilliseconds > 0)
        }
    }

    @Test func `a stream resumes after its last event`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let first = try await device.set("a", "1").cursor
            let second = try await device.set("b", "1").cursor
            var behind = try await server.listen(device, since: second, lastEvent: first)
            let missed = try #require(try await behind.nextEvent())
            #expect(try missed.keys == ["b"])
            #expect(try !missed.changes.whole)
            #expect(missed.id == second)
            var current = try await server.listen(device, since: second)
            #expect(try await current.nextEvent()?.name == "ready")
        }
    }

    @Test func `a listener that comes while others push misses nothing`() async throws {
        try await withServer({ $0.allowance = .init(burst: 10_000) }) { server in
            let writer = try await server.newDevice()
            let reader = try await server.furtherDevice()
            let count = 150
            async let pushes: Void = {
                for number in 0..<count { try await writer.set("key\(number)", "x") }
            }()
            for _ in 0..<5 {
                var stream = try await server.listen(reader)
                var keys: [String] = []
                var revision: Int64 = 0
                while keys.count < count, let event = try await stream.nextEvent() {
                    guard event.name == "changes" else { continue }
                    keys += try event.keys
                    let next = try Optional(event.changes.cursor).flatMap { Cursor($0) }.flatMap {
                        Position($0)
                    }?.revision
                    #expect(next ?? 0 > revision || keys.isEmpty)
                    revision = next ?? 0
                }
                #expect(keys.count == count)
                #expect(Set(keys).count == count)
            }
            try await pushes
        }
    }

    @Test func `a push of several keys is one event`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            var stream = try await server.listen(device)
            _ = try await stream.nextEvent()
            _ = try await stream.nextEvent()
            _ = try await device.push([.write("b", "1"), .write("a", PropertyListValue?.none)])
            let event = try #require(try await stream.nextEvent())
            #expect(try event.keys.sorted() == ["a", "b"])
        }
    }

    @Test func `a small event does not overtake a large one`() async throws {
        let large = PropertyListValue.array(Array(repeating: .boolean(true), count: 50_000))
        try await withServer({ $0.constants.streamBufferBytesMax = 8 << 20 }) { server in
            let device = try await server.newDevice()
            var streams = [try await server.listen(device), try await server.listen(device)]
            for index in streams.indices {
                for _ in ["changes", "ready"] { _ = try await streams[index].nextEvent() }
            }
            for turn: Int64 in 1...3 {
                let push = try await device.push([.write("large", large, at: turn)], .protobuf)
                #expect(push.status == 200)
                try await device.set("small \(turn)", "x")
            }
            for index in streams.indices {
                for turn in 1...3 {
                    #expect(try await streams[index].nextEvent()?.keys == ["large"])
                    #expect(try await streams[index].nextEvent()?.keys == ["small \(turn)"])
                }
            }
        }
    }

    @Test func `an idle stream gets heartbeats`() async throws {
        try await withServer({ $0.keepAliveSeconds = 1 }) { server in
            let device = try await server.newDevice()
            var stream = try await server.listen(device)
            _ = try await stream.nextEvent()
            _ = try await stream.nextEvent()
            #expect(try await stream.next()?.name == ":")
            #expect(try await stream.next()?.name == ":")
        }
    }

    @Test func `a listener that does not read is told to pull again and slows nobody`() async throws
    {
        let value = PropertyListValue.data(Array(repeating: 7, count: 500_000))
        try await withServer({
            $0.constants.streamBufferBytesMax = 1 << 20
            $0.metricsPort = 0
            // On a busy machine it would be ended for that before it is told, or has read that.
            $0.constants.slowSeconds = 3_600
        }) { server in
            let device = try await server.newDevice()
            let slow = try await RawConnection.open(server.port, reads: false)
            await slow.send(
                "GET /v1/stores/notes/changes HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n"
                    + "Authorization: Bearer \(device.credential)\r\n\r\n")
            var pushes = 0
            while try await server.count(of: "listener-overflow") == 0, pushes < 40 {
                #expect(try await device.push([.write("a", value)], .protobuf).status == 200)
                pushes += 1
            }
            #expect(pushes < 40)
            try await slow.readOn()
            let events = try await slow.end().split(separator: "event: ").dropFirst()
            #expect(events.count < 42)
            #expect(events.last?.hasPrefix("resync") == true)
        }
    }

    @Test func `an account cannot have more streams than allowed`() async throws {
        try await withServer({ $0.streamsPerAccountMax = 1 }) { server in
            let device = try await server.newDevice()
            let first = try await server.listen(device)
            let second = try await server.listen(device)
            #expect(second.status == 429)
            #expect(second.headers["retry-after"] == "30")
            withExtendedLifetime(first) {}
        }
    }

    @Test func `a stream whose client is gone makes room for another`() async throws {
        try await withServer({ $0.streamsPerAccountMax = 1 }) { server in
            let device = try await server.newDevice()
            do {
                var gone = try await server.listen(device)
                _ = try await gone.nextEvent()
            }
            try await until("room for another") { try await server.listen(device).status == 200 }
        }
    }

    @Test func `when the server stops, streams end soon and pushes are answered`() async throws {
        let server = try await RunningServer.start { $0.allowance = .init(burst: 10_000) }
        let device = try await server.newDevice()
        var stream = try await server.listen(device)
        _ = try await stream.nextEvent()
        let pushes = (0..<50).map { number in
            Task { try await device.push([.write("key\(number)", "x")]).status }
        }
        _ = try await pushes[0].value
        try await server.stop()
        while try await stream.next() != nil {}
        // What came too late finds no server, and tries on; what was accepted was answered.
        try await Task.sleep(for: .milliseconds(100))
        for push in pushes {
            push.cancel()
            let status = try? await push.value
            #expect(status == nil || status == 200)
        }
    }

    @Test func `a stream that begins while the server is stopped is refused, which is no error`()
        async throws
    {
        let log = LogRecorder()
        let server = try await RunningServer.start(log: log)
        let device = try await server.newDevice()
        var other = try await server.listen(device)
        let connection = try await RawConnection.open(server.port)
        let fields = "Host: a\r\nAuthorization: Bearer \(device.credential)\r\n"
        // A request under way keeps the connection.
        await connection.send(
            "POST /v1/codes HTTP/1.1\r\n\(fields)Content-Type: application/json\r\n"
                + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        try await connection.receive("100 Continue")
        async let stopped: Void = server.stop()
        while try await other.nextEvent() != nil {}
        await connection.send(
            "{}GET /v1/stores/notes/changes HTTP/1.1\r\n\(fields)Accept: text/event-stream\r\n\r\n")
        let answers = try await connection.end()
        try await stopped
        #expect(answers.contains("HTTP/1.1 200 OK"))
        #expect(answers.contains("HTTP/1.1 503 ") && answers.contains("shutting down"))
        #expect(!log.lines.contains { $0.level >= .error }, "\(log.text)")
    }
}
