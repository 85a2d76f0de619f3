// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Logging
internal import NIOHTTP1
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

extension AccountSuites {
    /// Every route against every sort of caller.
    @Suite struct AccessTests {
        @Test func `the table has every route that the server has, and no other`() throws {
            let storage = try SQLiteServerStorage.inMemory()
            let server = Server(
                ServerSettings(dataFolder: ""), storage: storage,
                operatorHash: SecretHash(of: "operator"), logger: Logger(label: "test"))
            defer {
                server.writer.close()
                server.readers.close()
            }
            let routes = server.routes.all.map { "\($0.method.rawValue) \($0.path)" }
            #expect(routes.sorted() == AccessRoute.all.map(\.description).sorted())
        }

        @Test func `every caller gets what the table says, and who may not changes nothing`()
            async throws
        {
            for caller in AccessCaller.allCases {
                try await AccessStage.with { stage in
                    let before = try await stage.everything()
                    // What ends the account comes last.
                    let routes =
                        AccessRoute.all.filter { !$0.endsAccount }
                        + AccessRoute.all.filter(\.endsAccount)
                    for route in routes {
                        let answer = try await stage.send(caller, route, to: stage.path(of: route))
                        #expect(
                            answer.status == route.status(for: caller),
                            "\(caller) \(route): \(answer.text)")
                        expectProblem(answer, caller, route)
                        if caller.isHarmless {
                            #expect(!answer.showsAda(to: caller), "\(caller) \(route)")
                        }
                    }
                    if caller.isHarmless {
                        #expect(try await stage.everything() == before, "\(caller)")
                    }
                }
            }
        }

        private func expectProblem(
            _ answer: RunningServer.Answer, _ caller: AccessCaller, _ route: AccessRoute
        ) {
            guard answer.status == 401, !route.path.hasSuffix("sign-in") else { return }
            let expected =
                switch caller {
                case .none: "credential-missing"
                case .expired: "credential-expired"
                default: "credential-invalid"
                }
            #expect((try? answer.problem.code) == expected, "\(caller) \(route)")
        }

        @Test func `what exists and may not be seen looks like what does not exist`() async throws {
            let blind = AccessCaller.allCases.filter(\.isHarmless)
            try await AccessStage.with { stage in
                for route in AccessRoute.all where route.path.contains("{") {
                    for caller in blind {
                        let there = try await stage.send(caller, route, to: stage.path(of: route))
                        let nowhere = try await stage.send(
                            caller, route, to: stage.pathToNothing(like: route))
                        #expect(there.status == nowhere.status, "\(caller) \(route)")
                        #expect(there.bodyButEpoch == nowhere.bodyButEpoch, "\(caller) \(route)")
                        #expect(
                            there.headersButDate == nowhere.headersButDate, "\(caller) \(route)")
                    }
                }
            }
        }

        @Test func `the streams of other accounts and other stores get nothing`() async throws {
            try await AccessStage.with { stage in
                for caller in AccessCaller.allCases where caller != .folder {
                    let device = RunningDevice(
                        server: stage.server, id: "", account: "",
                        credential: stage.credentials[caller] ?? "")
                    var stream = try await stage.server.listen(device, store: AccessStage.store)
                    let route = AccessRoute.all.first {
                        $0.description == "GET /v1/stores/{identifier}/changes"
                    }
                    #expect(stream.status == route?.status(for: caller), "\(caller)")
                    guard caller == .eve else { continue }
                    #expect(try await stream.nextEvent()?.keys == [])
                    #expect(try await stream.nextEvent()?.name == "ready")
                    try await stage.ada.set("more", "x", store: AccessStage.store)
                    try await device.set("eves", "y", store: AccessStage.store)
                    #expect(try await stream.nextEvent()?.keys == ["eves"])
                }
            }
        }

        @Test func `a stream of several stores brings each caller only what it may read`()
            async throws
        {
            try await AccessStage.with { stage in
                for (caller, titles) in [
                    (AccessCaller.eve, ["changes", "ready"]), (.elsewhere, ["ended"]),
                    (.here, ["changes", "ready"]),
                ] {
                    let device = RunningDevice(
                        server: stage.server, id: "", account: "",
                        credential: stage.credentials[caller] ?? "")
                    var stream = try await stage.server.listen(
                        device, stores: [.init(AccessStage.store), .init("elsewhere")])
                    var events: [EventReader.Event] = []
                    for _ in titles { events.append(try #require(try await stream.nextEvent())) }
                    #expect(try events.allSatisfy { try $0.store == AccessStage.store })
                    #expect(events.map(\.name) == titles, "\(caller)")
                    #expect(
                        events[0].data.contains("value \(AccessStage.secret)") == (caller == .here))
                    if caller == .elsewhere {
                        #expect(try events[0].problem.code == "not-yours")
                    }
                    // The device that is confined elsewhere has its own store in the same stream.
                    #expect(
                        try await stream.nextEvent()?.title
                            == (caller == .here ? "ended elsewhere" : "changes elsewhere"))
                }
            }
        }

        @Test func `a confined device can access its stores and itself, and nothing else`()
            async throws
        {
            try await withServer { server in
                let owner = try await server.newDevice()
                for store in ["one", "two"] { try await owner.set("a", "1", store: store) }
                let app = try await server.furtherDevice(stores: ["two", "three"])
                let stores = try await app.get("/v1/stores").message(WireStoreList.self).stores
                #expect(stores.map(\.identifier) == ["two"])
                let account = try await app.get("/v1/account").message(WireAccount.self)
                #expect(account.name == "ada")
                #expect(account.devices.map(\.id) == [app.id])
                #expect(account.devices.first?.stores == ["three", "two"])
                #expect(try await app.push([.write("b", "1")], store: "one").status == 403)
                try await app.set("b", "1", store: "three")
                var rename = WireRename()
                rename.name = "app"
                let own = try await server.send(
                    "PATCH", "/v1/devices/\(app.id)", credential: app.credential, rename)
                #expect(try own.message(WireDevice.self).name == "app")
                let end = try await server.send(
                    "DELETE", "/v1/devices/\(app.id)", credential: app.credential)
                #expect(end.status == 204)
                #expect(try await app.pull(store: "two").status == 401)
            }
        }

        @Test func `a stream ends when its credential expires`() async throws {
            let clock = TestClock(uptime: ServerClock.system.uptime)
            try await withServer({ $0.clock = clock.clock }) { server in
                _ = try await server.newDevice()
                let device = try await server.furtherDevice(seconds: 3_600)
                var stream = try await server.listen(device)
                #expect(try await stream.nextEvent()?.name == "changes")
                clock.advance(seconds: 3_599)
                #expect(try await device.pull().status == 200)
                clock.advance(seconds: 1)
                let answer = try await device.pull()
                #expect(try answer.problem.code == "credential-expired")
                while try await stream.next() != nil {}
            }
        }

        @Test func `sign-in attempts are throttled for all addresses together too`() async throws {
            try await withServer({
                $0.signInTotalAllowance = .init(burst: 1, perSecond: 0.5)
                $0.clock = TestClock().clock
            }) { server in
                #expect(try await server.signIn(code: "2222-2222-2222").status == 401)
                let second = try await server.signIn(code: "2222-2222-2222")
                #expect(second.status == 429)
                #expect(second.headers["retry-after"] == "2")
                #expect(try second.problem.detail == "Too many requests. Try again in 2 seconds.")
            }
        }
    }
}

extension AccessRoute {
    fileprivate var endsAccount: Bool {
        method == "DELETE" && !path.contains("{i") && path.hasPrefix("/v1/account")
            && !path.hasSuffix("sealing")
    }
}

extension AccessCaller {
    /// Whether nothing of ada's may be different after this caller tried everything.
    fileprivate var isHarmless: Bool { ![.own, .here, .operator, .folder].contains(self) }
}

extension AccessStage {
    /// Where the route finds what is ada's.
    fileprivate func path(of route: AccessRoute) -> String {
        route.path.replacingOccurrences(of: "{name}", with: Self.accountInPath)
            .replacingOccurrences(of: "{id}", with: phone.id)
            .replacingOccurrences(of: "{identifier}", with: Self.store)
            .replacingOccurrences(of: "{code}", with: "2222-2222")
    }

    fileprivate func pathToNothing(like route: AccessRoute) -> String {
        route.path.replacingOccurrences(of: "{name}", with: "nobody")
            .replacingOccurrences(of: "{id}", with: "0123456789abcdef")
            .replacingOccurrences(of: "{identifier}", with: "nothing")
            .replacingOccurrences(of: "{code}", with: "3333-3333")
    }
}

extension RunningServer.Answer {
    /// Whether something of ada's is in it. A confined device may know its account's name.
    fileprivate func showsAda(to caller: AccessCaller) -> Bool {
        let shown =
            caller == .elsewhere
            ? text.replacingOccurrences(of: AccessStage.account, with: "")
                .replacingOccurrences(of: AccessStage.store, with: "") : text
        // The event of a store repeats the name that the caller gave.
        let named = "\"store\":\"\(AccessStage.store)\""
        return shown.replacingOccurrences(of: named, with: "").contains(AccessStage.secret)
    }

    /// Each store has an epoch of its own, drawn by chance.
    fileprivate var bodyButEpoch: String {
        text.replacingOccurrences(
            of: "\"cursor\":\"[0-9a-f]{16}-", with: "", options: .regularExpression)
    }

    fileprivate var headersButDate: [String: String] { headers.filter { $0.key != "date" } }
}
