// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    /// Tests how people see the past and go back to it, with two devices and a server.
    @Suite struct HistoryCommandTests {
        /// Two signed-in homes.
        private struct Two {
            var stage: Stage
            /// The server's folder.
            var data: String
            var phone: String
            var laptop: String

            @discardableResult
            func run(_ home: String, _ arguments: String...) async throws -> String {
                let run = try await finish(home, arguments)
                guard run.status == 0 else { throw Trouble(run.errors) }
                return run.output
            }

            func finish(_ home: String, _ arguments: [String]) async throws -> ProgramRun {
                try await stage.run(
                    arguments + ["--home", home, "--store", Device.identifier])
            }

            func json(_ home: String, _ arguments: String...) async throws -> Any {
                let run = try await finish(home, arguments + ["--json"])
                guard run.status == 0 else { throw Trouble(run.errors) }
                return try JSONSerialization.jsonObject(
                    with: Data(run.output.utf8), options: .fragmentsAllowed)
            }

            func list(_ home: String, _ arguments: String...) async throws -> [[String: Any]] {
                let run = try await finish(home, arguments + ["--json"])
                guard run.status == 0 else { throw Trouble(run.errors) }
                let list = try JSONSerialization.jsonObject(with: Data(run.output.utf8))
                return list as? [[String: Any]] ?? []
            }
        }

        private func onTwo(
            _ options: [String] = [], _ body: @escaping @Sendable (Two) async throws -> Void
        ) async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage, options: options)
                let phone = try await server.newHome("phone", isFirst: true)
                let two = Two(
                    stage: stage, data: server.data, phone: phone,
                    laptop: try await server.newHome("laptop"))
                // Otherwise a new device's values would yield to the account's.
                try await two.run(two.laptop, "sync")
                try await body(two)
            }
        }

        /// The values of a list, as they are in JSON.
        private func strings(_ list: [[String: Any]], _ field: String = "value") -> [String?] {
            list.map { $0[field] as? String }
        }

        @Test func `a key's history, blame and undo`() async throws {
            try await onTwo { two in
                try await two.run(two.phone, "set", "theme", "dark")
                try await two.run(two.laptop, "set", "theme", "light")
                try await two.run(two.phone, "set", "other", "x")
                let versions = try await two.list(two.phone, "history", "theme")
                #expect(strings(versions) == ["light", "dark"])
                #expect(versions.map { $0["deviceName"] as? String } == ["laptop", "phone"])
                #expect(versions.map { $0["status"] as? String } == ["current", "replaced"])
                let all = try await two.list(two.phone, "history")
                #expect(all.map { $0["key"] as? String } == ["other", "theme", "theme"])
                let blame = try await two.list(two.laptop, "blame")
                #expect(blame.map { $0["key"] as? String } == ["other", "theme"])
                #expect(strings(blame, "before") == [nil, "dark"])
                #expect(blame.map { $0["deviceName"] as? String } == ["phone", "laptop"])

                try await two.run(two.phone, "undo", "theme")
                #expect(try await two.run(two.laptop, "get", "theme") == "dark\n")
                let again = try await two.finish(two.laptop, ["undo", "theme"])
                #expect(again.errors.contains("Another undo brings this back."), "\(again)")
                #expect(again.errors.contains("--to VERSION"), "\(again)")
                #expect(try await two.run(two.phone, "get", "theme") == "light\n")
                let version = try #require(versions.last?["version"] as? String)
                try await two.run(two.phone, "undo", "theme", "--to", version, "--dry-run")
                #expect(try await two.run(two.phone, "get", "theme") == "light\n")
                try await two.run(two.phone, "undo", "theme", "--to", version)
                #expect(try await two.run(two.laptop, "get", "theme") == "dark\n")
                // What was never there before goes away.
                try await two.run(two.laptop, "undo", "other")
                let missing = try await two.finish(two.phone, ["get", "other"])
                #expect(missing.status == 1)
                let unknown = try await two.finish(two.phone, ["undo", "nothing"])
                #expect(unknown.status == 1)
                let unclear = try await two.finish(two.phone, ["undo", "theme", "--to", "tea"])
                #expect(unclear.status == 64, "\(unclear.errors)")
            }
        }

        @Test func `what has changed since, and back to it`() async throws {
            try await onTwo { two in
                try await two.run(two.phone, "set", "theme", "dark")
                try await two.run(two.phone, "set", "old", "x")
                // By the server's clock, which is this machine's, and in whole milliseconds.
                try await Task.sleep(for: .milliseconds(20))
                let then = Date().formatted(
                    Date.ISO8601FormatStyle(includingFractionalSeconds: true))
                try await Task.sleep(for: .milliseconds(20))
                try await two.run(two.laptop, "set", "theme", "light")
                try await two.run(two.laptop, "set", "new", "y")
                try await two.run(two.laptop, "remove", "old")
                let diff = try await two.json(two.phone, "diff", "--since", then)
                let changes = (diff as? [String: Any])?["changes"] as? [[String: Any]] ?? []
                #expect(changes.map { $0["key"] as? String } == ["new", "old", "theme"])
                #expect(strings(changes, "before") == [nil, "x", "dark"])
                #expect(strings(changes, "after") == ["y", nil, "light"])

                let unsure = try await two.finish(two.phone, ["rewind", "--to", then])
                #expect(unsure.status == 64)
                #expect(unsure.output.contains("theme"))
                try await two.run(two.phone, "rewind", "--to", then, "--keys", "new", "--yes")
                #expect(try await two.finish(two.laptop, ["get", "new"]).status == 1)
                #expect(try await two.run(two.laptop, "get", "theme") == "light\n")
                try await two.run(two.phone, "rewind", "--to", then, "--yes")
                #expect(try await two.run(two.laptop, "get", "theme") == "dark\n")
                #expect(try await two.run(two.laptop, "get", "old") == "x\n")
                let after = try await two.json(two.laptop, "diff", "--since", then)
                #expect(((after as? [String: Any])?["changes"] as? [Any])?.isEmpty == true)
                let long = try await two.finish(two.phone, ["diff", "--since", "2 hours ago"])
                #expect(long.status == 0, "\(long.errors)")
            }
        }

        @Test func `a time that a command prints can be given to another`() async throws {
            try await onTwo { two in
                try await two.run(two.phone, "set", "theme", "dark")
                let status = try await two.run(two.phone, "status")
                let line = status.split(separator: "\n").first { $0.hasPrefix("Last synced") }
                let time = (line ?? "").dropFirst("Last synced".count).drop { $0 == " " }
                let diff = try await two.finish(two.phone, ["diff", "--since", String(time)])
                #expect(diff.status == 0, "\(time): \(diff.errors)")
                let history = try await two.run(two.phone, "history", "theme")
                #expect(history.firstMatch(of: #/[0-9-]{10} [0-9:]{8} [+-][0-9:]{5}/#) != nil)
            }
        }

        @Test func `a rewind that can compare nothing says so, and fails`() async throws {
            try await onTwo { two in
                try await two.stage.run(
                    ["account", "limits", "ada", "--history-versions", "1", "--data"]
                        + [two.data]
                ).expectSuccess()
                try await two.run(two.phone, "set", "theme", "1")
                try await Task.sleep(for: .milliseconds(20))
                let then = Date().formatted(
                    Date.ISO8601FormatStyle(includingFractionalSeconds: true))
                try await Task.sleep(for: .milliseconds(20))
                for value in ["2", "3", "4"] { try await two.run(two.phone, "set", "theme", value) }
                let line = ["rewind", "--to", then, "--yes"]
                let run = try await two.finish(two.phone, line)
                #expect(
                    run.status == 1 && run.errors.contains("nothing could be compared"), "\(run)")
                let json = try await two.finish(two.phone, line + ["--json"])
                #expect(json.status == 1 && json.output.contains("\"forgotten\":[\"theme\"]"))
                #expect(try await two.run(two.phone, "get", "theme") == "4\n")
                try await two.run(two.phone, "set", "new", "x")
                let part = try await two.finish(two.phone, line)
                #expect(part.status == 0, "\(part)")
            }
        }

        @Test func `a counter goes back, and has the values that it had`() async throws {
            try await onTwo { two in
                let phone = try Device(home: two.phone)
                let laptop = try Device(home: two.laptop)
                defer {
                    phone.close()
                    laptop.close()
                }
                for (device, count) in [(phone, Int64(5)), (laptop, 3), (phone, 1)] {
                    device.store.increment(forKey: "n", by: count)
                    try await device.store.synchronizeNow()
                    try await agreement(phone, laptop)
                }
                let versions = try await laptop.store.history(forKey: "n")
                #expect(versions.map { $0.value as? Int } == [9, 8, 5])
                #expect(versions.map(\.author.name) == ["phone", "laptop", "phone"])
                let shown = try await two.list(two.phone, "history")
                #expect(shown.map { $0["value"] as? Int } == [9, 8, 5])
                try await two.run(two.laptop, "undo", "n")
                try await agreement(phone, laptop) { $0[try! Key("n")] == .integer(8) }
            }
        }

        @Test func `a server that keeps no history says so`() async throws {
            try await onTwo(["--history-days", "0"]) { two in
                try await two.run(two.phone, "set", "theme", "dark")
                let diff = try await two.finish(two.phone, ["diff", "--since", "today"])
                #expect(diff.status == 77)
                #expect(diff.errors.contains("keeps no history"), "\(diff.errors)")
                let known = try await two.finish(two.phone, ["history", "theme"])
                #expect(known.status == 0)
                #expect(known.errors.contains("keeps no history"))
                #expect(known.output.contains("\"dark\""))
            }
        }

        @Test func `what was thinned out is a gap, and no removal to go back to`() async throws {
            try await onTwo { two in
                try await two.stage.run(
                    ["account", "limits", "ada", "--history-versions", "6", "--data", two.data]
                ).expectSuccess()
                for number in 0..<12 { try await two.run(two.phone, "set", "slider", "\(number)") }
                let list = try await two.list(two.phone, "history", "slider")
                let states = list.compactMap { $0["status"] as? String }
                #expect(states.contains("gap") && list.count == states.count, "\(list)")
                for line in list {
                    let isGap = line["status"] as? String == "gap"
                    #expect(
                        isGap == (line["value"] is NSNull) && isGap == (line["version"] is NSNull))
                }
                let text = try await two.run(two.phone, "history", "slider")
                #expect(text.contains("(not known)") && !text.contains("(removed)"), "\(text)")
            }
        }
    }
}
