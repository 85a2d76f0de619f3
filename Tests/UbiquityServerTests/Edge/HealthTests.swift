// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import Synchronization
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

struct HealthTests {
    /// Milliseconds of a clock that a test advances. Shared state: `ahead`, guarded by its mutex.
    private final class MovedClock: Sendable {
        let ahead = Mutex<Int64>(0)

        var clock: ServerClock {
            let system = ServerClock.system
            return ServerClock(
                now: system.now,
                uptime: { [self] in system.uptime() + ahead.withLock { $0 } })
        }
    }

    @Test func `a working server tells anybody that it is alive and ready`() async throws {
        try await withServer { server in
            #expect(try await server.send("GET", "/health/live").text == "{\"status\":\"ok\"}")
            try await until("readiness") {
                try await server.send("GET", "/health/ready").status == 200
            }
            #expect(try await server.send("POST", "/health/ready").status == 405)
        }
    }

    @Test func `without a round of housekeeping for some seconds it is not ready`() {
        let moved = MovedClock()
        let readiness = Readiness(clock: moved.clock)
        #expect(!readiness.isReady)
        readiness.roundEnded()
        #expect(readiness.isReady)
        moved.ahead.withLock { $0 = 5_100 }
        #expect(!readiness.isReady)
        readiness.roundEnded()
        #expect(readiness.isReady)
        readiness.stop()
        #expect(!readiness.isReady)
    }

    @Test func `that it is not ready is in the log once a minute, however often it is asked`() {
        let moved = MovedClock()
        let readiness = Readiness(clock: moved.clock)
        #expect((0..<100).count { _ in readiness.shouldLog() } == 1)
        moved.ahead.withLock { $0 = 61_000 }
        #expect((0..<100).count { _ in readiness.shouldLog() } == 1)
        #expect(!Problem.notReady.isLogged && Problem.answersInMemory.isLogged)
    }

    @Test func `whose data folder is moved away it stores nothing, and says that it is not ready`()
        async throws
    {
        let log = LogRecorder()
        let server = try await RunningServer.start(log: log)
        let device = try await server.newDevice()
        try await device.set("a", "1")
        let (data, elsewhere) = (server.folder.file("data"), server.folder.file("elsewhere"))
        try FileManager.default.moveItem(atPath: data, toPath: elsewhere)
        try await until("a refusal") { try await device.push([.write("b", "2")]).status == 503 }
        try await until("no readiness") {
            try await server.send("GET", "/health/ready").status == 503
        }
        try await until("a log line") {
            log.lines.contains { $0.text.contains("moved or removed") }
        }
        #expect(try await device.push([.write("c", "3")]).status == 503)
        // Another folder at its place is not it.
        try FileManager.default.createDirectory(
            atPath: data, withIntermediateDirectories: false)
        let database = "/ubiquity.sqlite"
        try FileManager.default.copyItem(atPath: elsewhere + database, toPath: data + database)
        try await until("a second look") { try await device.push([.write("d", "4")]).status == 503 }
        try FileManager.default.removeItem(atPath: data)
        try FileManager.default.moveItem(atPath: elsewhere, toPath: data)
        try await until("an answer") { try await device.push([.write("e", "5")]).status == 200 }
        try await until("readiness") {
            try await server.send("GET", "/health/ready").status == 200
        }
        try await server.stop()
    }

    @Test func `an answer that a browser may get has the headers for browsers`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            for answer in [
                try await server.send("GET", "/v1/config"),
                try await server.send("GET", "/v1/nothing"),
                try await server.send("PUT", "/v1/config"),
                try await server.send("GET", "/v1/account"),
                try await server.send("GET", "/health/live"),
            ] {
                #expect(answer.headers["x-content-type-options"] == "nosniff")
                #expect(
                    answer.headers["content-security-policy"]
                        == "default-src 'none'; frame-ancestors 'none'")
                #expect(answer.headers["referrer-policy"] == "no-referrer")
                #expect(answer.headers["cache-control"] == "no-store")
                #expect(answer.headers["strict-transport-security"] == nil)
                #expect(answer.headers["server"] == nil)
                #expect(answer.headers["access-control-allow-origin"] == nil)
            }
            // Browsers do not have a credential, but an intermediary might store what is read.
            let read = try await device.pull()
            #expect(read.headers["cache-control"] == "no-store")
            #expect(read.headers["x-content-type-options"] == nil)
            #expect(try await device.push([]).headers["cache-control"] == nil)
        }
    }

    @Test func `a flood of refusals makes one log line for each limit`() {
        let log = LogRecorder()
        let edge = Edge(
            ServerSettings(dataFolder: ""), tls: nil, metrics: ServerMetrics(), logger: log.logger)
        for _ in 0..<1_000 {
            edge.note(.connections)
            edge.note(.slowHead)
        }
        edge.report()
        edge.report()
        #expect(log.lines.map(\.text) == ["A limit was reached.", "A limit was reached."])
        #expect(log.lines.allSatisfy { $0.level == .notice })
    }
}

struct MetricsTests {
    @Test func `a foreign page cannot read the metrics under a name of its own`() async throws {
        try await withServer({ $0.metricsPort = 0 }) { server in
            for host in ["localhost:9717", "127.0.0.1", "a"] {
                let status = try await server.sendToMetrics(headers: ["Host": host]).status
                #expect(status == 200)
            }
            for host in ["evil.example", "evil.example:9717"] {
                let status = try await server.sendToMetrics(headers: ["Host": host]).status
                #expect(status == 421)
            }
        }
    }

    @Test func `the port for metrics has nothing else, not even for pages of an allowed origin`()
        async throws
    {
        try await withServer({
            $0.metricsPort = 0
            $0.allowedOrigins = ["https://notes.example"]
        }) { server in
            for (method, path, status) in [
                ("GET", "/metrics", 200), ("HEAD", "/metrics", 200), ("POST", "/metrics", 405),
                ("GET", "/", 404), ("GET", "/v1/config", 404), ("GET", "/v1/metrics", 404),
            ] {
                let answer = try await server.sendToMetrics(
                    method, path, headers: ["Origin": "https://notes.example"])
                #expect(answer.status == status, "\(method) \(path)")
                #expect(answer.headers["access-control-allow-origin"] == nil)
            }
            // Reading the metrics is none of what they count.
            #expect(try await !server.metrics().contains("route=\"/metrics\""))
        }
    }

    @Test func `what a server did can be read by Prometheus, and names nobody`() async throws {
        try await withServer({ $0.metricsPort = 0 }) { server in
            let device = try await server.newDevice(account: "grace")
            var stream = try await server.listen(device)
            #expect(try await stream.nextEvent()?.name == "changes")
            try await device.set("a-secret-key", "a secret value")
            #expect(try await stream.nextEvent()?.name == "ready")
            #expect(try await stream.nextEvent()?.name == "changes")
            _ = try await server.send("GET", "/v1/stores/\(UUID())/nothing")
            _ = try await server.send("GET", "/v1/account", credential: "ubd_wrong")
            let push =
                "ubiquity_requests_total{method=\"POST\",route=\"/v1/stores/{identifier}/changes\""
            try await until("the figures") {
                try await server.metrics().contains(push + ",status=\"200\"} 1\n")
            }
            let text = try await server.metrics()
            try check(text)
            for line in [
                "ubiquity_pushes_total 1", "ubiquity_transactions_total{outcome=\"committed\"} 1",
                "ubiquity_commit_seconds_count 1", "ubiquity_listeners 1",
                "ubiquity_delivery_seconds_count 1", "ubiquity_ready 1",
                "ubiquity_problems_total{code=\"credential-invalid\"} 1",
            ] { #expect(text.contains(line + "\n"), "\(line)") }
            for secret in ["a-secret-key", "a secret value", "grace", "notes", device.id] {
                #expect(!text.contains(secret))
            }
        }
    }

    /// Checks the format as Prometheus requires it: each name is declared once, before its values,
    /// which stand together; no value comes twice; the steps of a histogram grow and end in `+Inf`.
    private func check(_ text: String) throws {
        #expect(text.hasSuffix("\n"))
        var declared: [String: String] = [:]
        var name = ""
        var seen: Set<Substring> = []
        var last: (name: String, count: Int) = ("", 0)
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 3)
            if line.hasPrefix("# HELP") { continue }
            if line.hasPrefix("# TYPE") {
                name = String(words[2])
                let before = declared.updateValue(String(words[3]), forKey: name)
                #expect(before == nil)
                continue
            }
            let value = try #require(line.wholeMatch(of: Self.value), "\(line)")
            let isNew = seen.insert(value.series).inserted
            #expect(isNew, "\(line)")
            let base = String(value.name)
            let isHistogram = declared[name] == "histogram"
            #expect(isHistogram ? base.hasPrefix(name + "_") : base == name, "\(line)")
            guard base.hasSuffix("_bucket") else { continue }
            let labels = String(value.series).replacing(/,?le="[^"]*"/, with: "")
            let count = try #require(Int(value.number))
            if labels == last.name { #expect(count >= last.count, "\(line)") }
            last = (labels, count)
        }
        #expect(declared.count > 15)
    }

    // Not stored: a regular expression may not be shared.
    private static var value:
        Regex<(Substring, series: Substring, name: Substring, number: Substring)>
    {
        /(?<series>(?<name>[a-z_][a-z0-9_]*)(?:\{[a-z]+="(?:[^"\\]|\\.)*"(?:,[a-z]+="(?:[^"\\]|\\.)*")*\})?) (?<number>[-+0-9.e]+)/
    }

    @Test func `a label is quoted, and a histogram adds up`() {
        var text = PrometheusText()
        text.begin("a", .counter, "Help.")
        text.value("a", 3, ["l": "x\"y\\z\n"])
        #expect(text.text == "# HELP a Help.\n# TYPE a counter\na{l=\"x\\\"y\\\\z\\n\"} 3\n")
        var histogram = Histogram([1, 2])
        for value in [0.5, 1, 1.5, 7] { histogram.record(value) }
        #expect(histogram.counts == [2, 1, 1])
        var lines = PrometheusText()
        lines.histogram("h", histogram)
        #expect(
            lines.text == """
                h_bucket{le="1.0"} 2
                h_bucket{le="2.0"} 3
                h_bucket{le="+Inf"} 4
                h_sum 10.0
                h_count 4

                """)
    }
}
