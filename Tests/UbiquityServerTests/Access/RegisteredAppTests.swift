// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import SwiftProtobuf
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

extension AccountSuites {
    /// A server that takes registered apps only.
    @Suite struct RegisteredAppTests {
        private func withServerOfRegisteredApps(
            _ body: (RunningServer) async throws -> Void
        ) async throws {
            try await withServer({ $0.apps = .registered }, body)
        }

        private func change(_ method: String, _ app: String, _ server: RunningServer) async throws
            -> Int
        {
            try await server.send(
                method, "/v1/apps/\(app)", credential: server.operatorCredential
            ).status
        }

        @Test func `a store whose app is not registered is refused, and taken once it is`()
            async throws
        {
            try await withServerOfRegisteredApps { server in
                let device = try await server.newDevice()
                for answer in [try await device.push([.write("a", "1")]), try await device.pull()] {
                    #expect(answer.status == 403)
                    #expect(try answer.problem.code == "app-not-registered")
                }
                #expect(try await server.listen(device).status == 403)
                #expect(try await change("PUT", "notes", server) == 204)
                #expect(try await change("PUT", "notes", server) == 204)
                try await device.set("a", "1")
                let list = try await server.send(
                    "GET", "/v1/apps", credential: server.operatorCredential
                ).message(WireAppList.self)
                #expect(list.registeredOnly)
                #expect(list.apps.map(\.identifier) == ["notes"])
            }
        }

        @Test func `an app that is removed loses its streams, and keeps its values`() async throws {
            try await withServerOfRegisteredApps { server in
                let device = try await server.newDevice()
                #expect(try await change("PUT", "notes", server) == 204)
                try await device.set("a", "1")
                var stream = try await server.listen(device)
                _ = try await stream.nextEvent()
                #expect(try await change("DELETE", "notes", server) == 204)
                while try await stream.next() != nil {}
                #expect(try await change("DELETE", "notes", server) == 404)
                #expect(try await device.pull().status == 403)
                #expect(try await change("PUT", "notes", server) == 204)
                #expect(try await device.pull().message(WireChanges.self).records.count == 1)
            }
        }

        @Test func `an app that is removed ends in a stream of several, and the others go on`()
            async throws
        {
            try await withServerOfRegisteredApps { server in
                let device = try await server.newDevice()
                for app in ["notes", "other"] {
                    #expect(try await change("PUT", app, server) == 204)
                }
                var stream = try await server.listen(
                    device, stores: [.init("notes"), .init("third"), .init("other")])
                for title in ["changes notes", "ready notes", "ended third"] {
                    #expect(try await stream.nextEvent()?.title == title)
                }
                for title in ["changes other", "ready other"] {
                    #expect(try await stream.nextEvent()?.title == title)
                }
                #expect(try await change("DELETE", "notes", server) == 204)
                let end = try #require(try await stream.nextEvent())
                #expect(try end.title == "ended notes")
                #expect(try end.problem.code == "app-not-registered" && end.problem.status == 403)
                try await device.set("a", "1", store: "other")
                #expect(try await stream.nextEvent()?.keys == ["a"])
                #expect(try await change("DELETE", "other", server) == 204)
                #expect(try await stream.nextEvent()?.title == "ended other")
                #expect(try await stream.nextEvent() == nil)
            }
        }

        @Test func `apps registered and removed through the data folder count at once`()
            async throws
        {
            try await withServerOfRegisteredApps { server in
                let device = try await server.newDevice()
                #expect(try await server.sendInFolder("PUT", "/v1/apps/notes").status == 204)
                #expect(try await device.push([.write("a", "1")]).status == 200)
                var stream = try await server.listen(device)
                _ = try await stream.nextEvent()
                #expect(try await server.sendInFolder("DELETE", "/v1/apps/notes").status == 204)
                while try await stream.next() != nil {}
                #expect(try await device.pull().status == 403)
            }
        }

        @Test func `an app has a name for people, with a bound and no control characters`()
            async throws
        {
            try await withServer { server in
                let device = try await server.newDevice()
                try await device.set("a", "1")
                func name(_ name: String) async throws -> Int {
                    try await server.send(
                        "PUT", "/v1/apps/notes", credential: server.operatorCredential,
                        WireRename.with { $0.name = name }
                    ).status
                }
                func names() async throws -> [String] {
                    let apps = try await server.send(
                        "GET", "/v1/apps", credential: server.operatorCredential
                    ).message(WireAppList.self).apps
                    let stores = try await device.get("/v1/stores").message(WireStoreList.self)
                    return apps.map(\.name) + stores.stores.map(\.appName)
                }
                for (given, shown) in [("Notes", "Notes"), ("Nötes", "Nötes"), ("", "Nötes")] {
                    #expect(try await name(given) == 204)
                    #expect(try await names() == [shown, shown])
                }
                for bad in ["a\u{7}b", "a\nb", " a", String(repeating: "a", count: 129)] {
                    #expect(try await name(bad) == 400)
                }
                #expect(try await names() == ["Nötes", "Nötes"])
                #expect(try await change("DELETE", "notes", server) == 204)
                #expect(try await names() == [""])
            }
        }

        @Test func `a server knows its apps again after a restart`() async throws {
            let folder = try TemporaryFolder()
            try await withServer(in: folder) { server in
                #expect(try await change("PUT", "notes", server) == 204)
                let list = try await server.send(
                    "GET", "/v1/apps", credential: server.operatorCredential
                ).message(WireAppList.self)
                #expect(!list.registeredOnly)
                try await server.newDevice().set("a", "1", store: "another")
            }
            try await withServer(in: folder, { $0.apps = .registered }) { server in
                let device = try await server.furtherDevice()
                try await device.set("a", "1")
                #expect(try await device.pull(store: "another").status == 403)
            }
        }
    }
}
