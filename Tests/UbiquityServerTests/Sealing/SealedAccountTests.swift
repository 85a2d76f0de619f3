// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import SwiftProtobuf
internal import Testing
internal import UbiquityWire

@testable internal import UbiquityCore
@testable internal import UbiquityServer

/// The requests of devices of a sealed account.
struct SealedAccountTests {
    private static func box(_ key: String, generation: UInt32 = 1) -> WireRecord {
        var record = WireRecord.write(
            key,
            .sealed(
                SealedBox(generation: generation, bytes: [1] + [UInt8](repeating: 7, count: 48))))
        record.device = ""
        return record
    }

    private static func proof(_ key: UInt8) -> Data { Data(repeating: key, count: 32) }

    private static func mark(
        _ generation: UInt32, key: UInt8 = 1, recovery: [UInt8] = [1, 2, 3]
    ) -> WireSealing {
        .with {
            $0.generation = generation
            $0.check = Data(SHA256.hash([UInt8](proof(key))).bytes)
            $0.recovery = Data(recovery)
        }
    }

    /// - Parameter key: The one whose proof the device shows; nil for none.
    private func send(
        _ method: String, _ path: String, _ device: RunningDevice, key: UInt8?,
        _ body: (any Message)? = nil
    ) async throws -> RunningServer.Answer {
        var headers = ["Accept": WireFormat.json.rawValue]
        headers[keyProofHeader] = key.map { Self.proof($0).base64EncodedString() }
        if body != nil { headers["Content-Type"] = WireFormat.json.rawValue }
        return try await device.server.send(
            method, path, credential: device.credential,
            body: body.map { WireFormat.json.encode($0) }, headers: headers)
    }

    private func seal(
        _ device: RunningDevice, _ mark: WireSealing = mark(1), key: UInt8? = nil
    ) async throws -> RunningServer.Answer {
        try await send("PUT", "/v1/sealing", device, key: key, mark)
    }

    private func reset(
        _ device: RunningDevice, key: UInt8? = nil
    ) async throws -> RunningServer.Answer {
        try await send("DELETE", "/v1/sealing", device, key: key)
    }

    private func sealing(_ device: RunningDevice) async throws -> WireSealing {
        try await device.get("/v1/sealing").message(WireSealing.self)
    }

    private func push(
        _ device: RunningDevice, _ writes: [WireRecord], generation: UInt32 = 1,
        store: String = "notes"
    ) async throws -> RunningServer.Answer {
        let push = WirePush.with {
            $0.transactions = [.with { $0.writes = writes }]
            $0.generation = generation
        }
        return try await device.server.send(
            "POST", "/v1/stores/\(store)/changes", credential: device.credential, push)
    }

    private func expect(
        _ answer: RunningServer.Answer, _ status: Int, _ code: String, generation: UInt32 = 0
    ) throws {
        #expect(answer.status == status)
        #expect(try answer.problem.code == code)
        #expect(try answer.problem.generation == generation)
    }

    @Test func `an account is sealed by one of two devices, and a confined one sees less`()
        async throws
    {
        try await withServer { server in
            let device = try await server.newDevice()
            let confined = try await server.furtherDevice(stores: ["notes"])
            try await device.set("a", "clear")
            try await device.set("a", "clear", store: "other")
            #expect(try await sealing(device) == WireSealing())
            #expect(try await seal(confined).status == 403)
            #expect(try await seal(device).status == 204)
            #expect(try await seal(device).status == 204)
            try expect(await seal(device, Self.mark(1, key: 2)), 409, "sealed", generation: 1)
            #expect(try await seal(device, Self.mark(0)).status == 400)
            #expect(try await seal(device, .with { $0.generation = 2 }).status == 400)
            let seen = try await sealing(device)
            #expect(seen.check == Self.mark(1).check && seen.recovery == Data([1, 2, 3]))
            #expect(seen.generation == 1 && seen.unsealed == ["notes", "other"])
            #expect(seen.sealedBy == device.id && seen.sealedByName == "laptop")
            #expect(abs(Int64(seen.sealedMilliseconds) - nowMilliseconds()) < 3_600_000)
            let part = try await sealing(confined)
            #expect(part.recovery.isEmpty && part.unsealed == ["notes"] && part.generation == 1)
            #expect(part.sealedBy.isEmpty && part.sealedByName.isEmpty)
            #expect(try await reset(confined).status == 403)
        }
    }

    @Test func `the mark is changed by devices that show its key, and by no others`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let thief = try await server.furtherDevice()
            #expect(try await seal(device).status == 204)
            let wrap = Self.mark(1, recovery: [4])
            for mark in [Self.mark(2, key: 2), wrap, Self.mark(900, key: 9)] {
                for key in [nil, 2] as [UInt8?] {
                    try expect(await seal(thief, mark, key: key), 403, "proof")
                }
            }
            try expect(await reset(thief, key: 2), 403, "proof")
            #expect(try await sealing(device).recovery == Data([1, 2, 3]))
            #expect(try await seal(device, wrap, key: 1).status == 204)
            #expect(try await seal(device, Self.mark(2, key: 2), key: 1).status == 204)
            // The answer was lost: now the present key is another one.
            for key in [1, 2, nil] as [UInt8?] {
                #expect(try await seal(device, Self.mark(2, key: 2), key: key).status == 204)
            }
            #expect(try await sealing(device).generation == 2)
            let far = Self.mark(.max, key: 3)
            try expect(await seal(device, far, key: 2), 409, "clock-ahead")
            let path = "/v1/sealing"
            let answer = try await server.send(
                "PUT", path, credential: device.credential,
                body: WireFormat.json.encode(far),
                headers: [
                    "Content-Type": WireFormat.json.rawValue, keyProofHeader: "no proof",
                ])
            #expect(answer.status == 400)
        }
    }

    @Test func `a mark that changes nothing ends no stream`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            #expect(try await seal(device).status == 204)
            var stream = try await server.listen(
                device, stores: [.with { ($0.identifier, $0.generation) = ("notes", 1) }])
            #expect(try await stream.nextEvent()?.name == "changes")
            #expect(try await stream.nextEvent()?.name == "ready")
            #expect(try await seal(device).status == 204)
            #expect(try await push(device, [Self.box("a")]).status == 200)
            #expect(try await stream.nextEvent()?.name == "changes")
        }
    }

    @Test func `each request must name the account's key, and a store must have it`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let cursor = try await device.set("a", "clear").cursor
            let reads = [
                "changes", "changes?since=\(cursor)", "history", "snapshot", "whole",
            ]
            func path(_ read: String, _ generation: UInt32) -> String {
                "/v1/stores/notes/\(read)\(read.contains("?") ? "&" : "?")generation=\(generation)"
            }
            for read in reads {
                #expect(try await device.get(path(read, 0)).status == 200)
                try expect(await device.get(path(read, 1)), 409, "sealed")
            }
            try expect(await push(device, [Self.box("a")]), 409, "sealed")
            #expect(try await seal(device).status == 204)
            for read in reads {
                let old = try await device.get("/v1/stores/notes/\(read)")
                try expect(old, 409, "sealed", generation: 1)
                #expect(try old.problem.detail.contains("this device has no key"))
                try expect(await device.get(path(read, 2)), 409, "sealed", generation: 1)
                let answer = try await device.get(path(read, 1))
                guard read != "whole" else {
                    #expect(answer.status == 200)
                    continue
                }
                try expect(answer, 503, "store-unsealed")
                #expect(answer.headers["retry-after"] != nil)
            }
            try expect(
                await push(device, [.write("a", "clear")], generation: 0), 409, "sealed",
                generation: 1)
            try expect(await push(device, [Self.box("a")]), 503, "store-unsealed")
            #expect(try await device.get("/v1/stores/notes/changes?generation=x").status == 400)
            // A new store takes the key.
            let fresh = try await push(device, [Self.box("a")], store: "fresh")
            let answer = try fresh.message(WirePushAnswer.self)
            #expect(answer.results.first?.committed.writes.count == 1)
            let clear = try await push(device, [.write("a", "clear")], store: "fresh")
            let refused = try clear.message(WirePushAnswer.self)
            #expect(refused.results.first?.refused.code == "not-sealed")
        }
    }

    @Test func `a store is sealed whole, and goes on`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            try await device.set("a", "clear text")
            let last = try await device.set("a", "clear text 2").cursor
            #expect(try await seal(device).status == 204)
            let read = try await device.get("/v1/stores/notes/whole?generation=1")
                .message(WireChanges.self)
            #expect(read.cursor == last && read.whole && read.records.count == 1)
            func replace(
                _ records: [WireRecord], cursor: String, key: UInt8? = 1
            ) async throws -> RunningServer.Answer {
                let whole = WireWholeStore.with {
                    $0.cursor = cursor
                    $0.generation = 1
                    $0.records = records
                }
                return try await send("PUT", "/v1/stores/notes/whole", device, key: key, whole)
            }
            var box = Self.box("a")
            box.device = device.id
            #expect(try await replace(read.records, cursor: last).status == 400)
            #expect(try await replace([box, box], cursor: last).status == 400)
            try expect(await replace([box], cursor: last, key: nil), 403, "proof")
            try expect(await replace([box], cursor: last, key: 2), 403, "proof")
            let answer = try await replace([box], cursor: last)
            #expect(answer.status == 200)
            let cursor = try answer.message(WireChanges.self).cursor
            try expect(await replace([box], cursor: last), 409, "store-changed")
            let sealed = try await device.get("/v1/stores/notes/changes?generation=1")
                .message(WireChanges.self)
            #expect(sealed.cursor == cursor && sealed.records == [box])
            try expect(
                await device.get("/v1/stores/notes/changes?generation=1&since=\(last)"), 410,
                "cursor-forgotten")
            #expect(
                try await device.get("/v1/sealing").message(WireSealing.self).unsealed == [])
            let history = try await device.get("/v1/stores/notes/history?generation=1")
            #expect(try history.message(WireHistory.self).versions.count == 1)
            #expect(try await push(device, [Self.box("b")]).status == 200)
        }
    }

    @Test func `streams end with the mark, and open with the key alone`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            var stream = try await server.listen(device)
            #expect(try await stream.nextEvent()?.name == "changes")
            #expect(try await stream.nextEvent()?.name == "ready")
            #expect(try await seal(device).status == 204)
            #expect(try await stream.nextEvent() == nil)
            #expect(try await server.listen(device).status == 409)
            var several = try await server.listen(
                device,
                stores: [.init("old"), .with { ($0.identifier, $0.generation) = ("new", 1) }])
            let ended = try #require(try await several.nextEvent())
            #expect(ended.name == "ended")
            let problem = try ended.problem
            #expect(problem.code == "sealed")
            #expect(problem.generation == 1)
            #expect(problem.store == "old")
            #expect(try await several.nextEvent()?.name == "changes")
        }
    }

    @Test func `a handover is for the devices of its account, also confined ones`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            let confined = try await server.furtherDevice(stores: ["notes"])
            let path = "/v1/handovers/" + String(repeating: "0a", count: 16)
            func put(_ count: Int, by device: RunningDevice, _ path: String) async throws -> Int {
                let body = WireHandover.with { $0.box = Data(repeating: 7, count: count) }
                return try await server.send("PUT", path, credential: device.credential, body)
                    .status
            }
            #expect(try await device.get(path).status == 404)
            #expect(try await put(Handover.bytesMax, by: confined, path) == 204)
            let answer = try await device.get(path).message(WireHandover.self)
            #expect(answer.box == Data(repeating: 7, count: Handover.bytesMax))
            #expect(try await put(3, by: device, path) == 204)
            #expect(try await confined.get(path).message(WireHandover.self).box.count == 3)
            #expect(try await put(0, by: device, path) == 400)
            #expect(try await put(Handover.bytesMax + 1, by: device, path) == 400)
            #expect(try await put(3 * Handover.bytesMax, by: device, path) == 413)
            #expect(try await put(3, by: device, path.uppercased()) == 404)
            #expect(try await put(3, by: device, path + "0") == 400)
            #expect(try await device.get(path + "0").status == 400)
        }
    }

    @Test func `a reset makes the account as new, and its devices stay`() async throws {
        try await withServer { server in
            let device = try await server.newDevice()
            for key in [nil, 1] as [UInt8?] {
                try expect(await reset(device, key: key), 409, "sealed")
            }
            #expect(try await seal(device).status == 204)
            let answer = try await push(device, [Self.box("a")]).message(WirePushAnswer.self)
            #expect(try await reset(device, key: 1).status == 204)
            try expect(await device.pull(since: answer.cursor), 410, "cursor-forgotten")
            #expect(try await device.pull().message(WireChanges.self).records == [])
            #expect(try await sealing(device) == WireSealing())
            try await device.set("a", "clear")
            // The operator needs no key.
            #expect(try await seal(device, Self.mark(2)).status == 204)
            let path = "/v1/accounts/ada/sealing"
            for status in [204, 409] {
                let ended = try await server.send(
                    "DELETE", path, credential: server.operatorCredential)
                #expect(ended.status == status)
            }
            #expect(try await sealing(device) == WireSealing())
        }
    }

    @Test func `a reset without the key is announced, and withdrawn by a device with it`()
        async throws
    {
        try await withServer { server in
            let device = try await server.newDevice()
            let thief = try await server.furtherDevice()
            #expect(try await seal(device).status == 204)
            #expect(try await push(device, [Self.box("a")]).status == 200)
            func read(_ device: RunningDevice, key: UInt8?) async throws -> Int {
                try await send(
                    "GET", "/v1/stores/notes/changes?generation=1", device, key: key
                ).status
            }
            var stream = try await server.listen(
                device, stores: [.with { ($0.identifier, $0.generation) = ("notes", 1) }])
            #expect(try await stream.nextEvent()?.name == "changes")
            #expect(try await stream.nextEvent()?.name == "ready")
            #expect(try await reset(thief).status == 204)
            // So that devices with the key come back, and show it.
            #expect(try await stream.nextEvent() == nil)
            let ends = try await sealing(device).endsMilliseconds
            let week = SealingState.noticeMilliseconds
            #expect(abs(Int64(ends) - nowMilliseconds() - week) < 3_600_000)
            #expect(try await reset(thief).status == 204)
            for key in [nil, 2] as [UInt8?] {
                #expect(try await read(device, key: key) == 200)
                #expect(try await read(thief, key: key) == 200)
            }
            #expect(try await sealing(device).endsMilliseconds == ends)
            #expect(try await read(device, key: 1) == 200)
            try await until("the end of the announcement") {
                try await sealing(device).endsMilliseconds == 0
            }
            // Also by another wrap.
            #expect(try await reset(thief).status == 204)
            #expect(try await sealing(device).endsMilliseconds > 0)
            #expect(try await seal(device, Self.mark(1, recovery: [4]), key: 1).status == 204)
            #expect(try await sealing(device).endsMilliseconds == 0)
            #expect(try await read(device, key: 1) == 200)
        }
    }

    @Test func `an announced reset is carried out when it is due, by the server itself`()
        async throws
    {
        let (folder, clock) = (try TemporaryFolder(), TestClock(uptime: ServerClock.system.uptime))
        let configure = { (settings: inout ServerSettings) in settings.clock = clock.clock }
        var known: RunningDevice?
        try await withServer(in: folder, configure) { server in
            let device = try await server.newDevice()
            known = device
            #expect(try await seal(device).status == 204)
            #expect(try await reset(device).status == 204)
        }
        clock.advance(seconds: SealingState.noticeMilliseconds / 1_000)
        try await withServer(in: folder, configure) { server in
            let before = try #require(known)
            let device = RunningDevice(
                server: server, id: before.id, account: before.account,
                credential: before.credential)
            // The clock may be wrong until it has run evenly.
            #expect(try await sealing(device).generation == 1)
            clock.pass(seconds: 3_600)
            try await until("the reset") { try await sealing(device).generation == 0 }
            let entry = try await server.send(
                "GET", "/v1/audit?deed=account-reset", credential: server.operatorCredential
            ).message(WireAuditTrail.self).entries.first
            #expect(entry?.deed == "account-reset" && entry?.actor == "housekeeping")
        }
    }
}
