// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

struct PushTests {
    @Test(arguments: WireFormat.allCases)
    func `what was pushed is pulled, in either form`(format: WireFormat) async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let value = PropertyListValue.dictionary([
                "true": .boolean(true), "one": .integer(1), "real": .real(1), "nan": .real(.nan),
                "date": .date(0.1), "big": .unsigned(.max), "data": .data([0, 255]),
                "empty": .array([]), "e\u{301}🙂": .string("\u{E9}"),
            ])
            let pushed = try await device.push([.write("k", value)], format)
            #expect(pushed.status == 200)
            #expect(pushed.headers["content-type"] == format.rawValue)
            let answer = try PushAnswer(pushed.message(WirePushAnswer.self, format))
            #expect(answer.results == [.committed([.applied])])
            let pulled = try await server.send(
                "GET", "/v1/stores/notes/changes", credential: device.credential,
                headers: ["Accept": format.rawValue])
            let changes = try ChangeSet(pulled.message(WireChanges.self, format))
            #expect(changes.isWhole)
            #expect(changes.cursor == answer.cursor)
            #expect(changes.records.map(\.content) == [.value(value)])
            #expect(changes.records.map { "\($0.stamp.device)" } == [device.id])
        }
    }

    @Test func `a push that repeats itself changes nothing`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let writes = [WireRecord.write("a", "1"), .write("b", PropertyListValue?.none)]
            let first = try await device.push(writes).message(WirePushAnswer.self)
            let second = try await device.push(writes).message(WirePushAnswer.self)
            #expect(first.cursor == second.cursor)
            #expect(first.results == second.results)
        }
    }

    @Test func `after a cursor come the changes and deletions since`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            try await device.set("a", "1")
            let cursor = try await device.set("b", "1").cursor
            try await device.set("c", "1")
            _ = try await device.push([.write("a", PropertyListValue?.none)])
            let changes = try await device.pull(since: cursor).message(WireChanges.self)
            #expect(changes.records.map(\.key).sorted() == ["a", "c"])
            #expect(!changes.whole)
            let whole = try await device.pull().message(WireChanges.self)
            #expect(whole.records.map(\.key).sorted() == ["b", "c"])
            #expect(whole.cursor == changes.cursor)
        }
    }

    @Test func `an earlier write loses and gets the winner`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let early = WireRecord.write("a", "early")
            try await device.set("a", "late")
            let answer = try PushAnswer(
                await device.push([early]).message(WirePushAnswer.self))
            guard case .committed(let writes) = answer.results.first,
                case .superseded(by: let winner) = writes.first
            else {
                Issue.record("not superseded")
                return
            }
            #expect(winner.content == .value(.string("late")))
        }
    }

    @Test func `a write from the future is refused with the server's time`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let late = WireRecord.write("a", .integer(1), at: nowMilliseconds() + 120_000)
            let answer = try await device.push([late])
            #expect(answer.status == 409)
            let problem = try answer.problem
            #expect(problem.code == "clock-ahead")
            #expect((nowMilliseconds() - Int64(problem.serverMilliseconds)).magnitude < 10_000)
            #expect(problem.detail.hasPrefix("transactions[0].writes["))
        }
    }

    @Test func `a transaction over the quota is refused, and others of the push apply`()
        async throws
    {
        try await withServer({ $0.limits.keysMax = 2 }) { server in
            let device = try await server.newDevice()
            var push = WirePush()
            push.transactions = [["a", "b"], ["c"], ["a"]].map { keys in
                var transaction = WireTransaction()
                transaction.writes = keys.map { .write($0, "x") }
                return transaction
            }
            let answer = try await server.send(
                "POST", "/v1/stores/notes/changes", credential: device.credential, push)
            #expect(answer.status == 200)
            let results = try PushAnswer(answer.message(WirePushAnswer.self)).results
            #expect(results.count == 3)
            guard case .refused(let refusal) = results[1] else {
                Issue.record("not refused")
                return
            }
            #expect(refusal.code == "quota-keys")
        }
    }

    @Test func `an array of nothing is refused for how many it holds`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            func refusal(of count: Int) async throws -> String? {
                let nothing = PropertyListValue.array(Array(repeating: .string(""), count: count))
                let answer = try PushAnswer(
                    await device.push([.write("a\(count)", nothing)]).message(WirePushAnswer.self))
                guard case .refused(let refusal) = answer.results.first else { return nil }
                return refusal.code
            }
            #expect(try await refusal(of: 131_073) == "value-too-large")
            #expect(try await refusal(of: 131_072) == nil)
            #expect(try await refusal(of: 1) == "quota-bytes")
        }
    }

    @Test func `many pushes at once are all answered, each with a revision of its own`()
        async throws
    {
        try await withServer({ $0.allowance = .init(burst: 10_000) }) { server in
            let device = try await server.newDevice()
            let cursors = try await withThrowingTaskGroup(of: [String].self) { group in
                for worker in 0..<40 {
                    group.addTask {
                        var cursors: [String] = []
                        for number in 0..<10 {
                            let key = "key\(worker)-\(number)"
                            cursors.append(try await device.set(key, "x").cursor)
                        }
                        return cursors
                    }
                }
                return try await group.reduce(into: Set<String>()) { $0.formUnion($1) }
            }
            #expect(cursors.count == 400)
            let revisions = cursors.compactMap { Cursor($0).flatMap(Position.init)?.revision }
            #expect(revisions.sorted() == Array(1...400))
            let list = try await device.get("/v1/stores").message(WireStoreList.self)
            #expect(list.stores.map(\.identifier) == ["notes"])
            #expect(list.stores.map(\.keys) == [400])
        }
    }

    @Test func `reading does not create a store`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let changes = try await device.pull().message(WireChanges.self)
            #expect(changes.cursor == "0000000000000000-0")
            let later = try await device.pull(since: changes.cursor).message(WireChanges.self)
            #expect(later.records.isEmpty && !later.whole)
            #expect(try await device.get("/v1/stores").message(WireStoreList.self).stores.isEmpty)
        }
    }
}
