// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity

extension EndToEndTests {
    @Suite struct RestoredServerTests {
        @Test func `a server restored from an older copy heals from its devices`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = try Device(home: await server.newHome("a", isFirst: true))
                let b = try Device(home: await server.newHome("b"))
                let homeC = try await server.newHome("c")
                defer {
                    a.close()
                    b.close()
                }
                a.store.set("kept", forKey: "kept")
                a.store.set("old", forKey: "changed")
                a.store.set("old", forKey: "deleted")
                try await agreement(a, b) { $0.count == 3 }

                try await server.stop()
                let copy = stage.path("copy")
                try FileManager.default.copyItem(atPath: server.data, toPath: copy)
                try await server.start()
                a.store.set("new", forKey: "changed")
                b.store.removeObject(forKey: "deleted")
                b.store.set("new", forKey: "added")
                let healed = ["kept": "kept", "changed": "new", "added": "new"]
                try await until("the news on both") {
                    [a, b].allSatisfy { Self.values($0) == healed && $0.isSettled }
                }

                try await server.stop()
                try FileManager.default.removeItem(atPath: server.data)
                try FileManager.default.moveItem(atPath: copy, toPath: server.data)
                try await server.start()
                let c = try Device(home: homeC)
                defer { c.close() }
                try await until("the healing") {
                    [a, b, c].allSatisfy { Self.values($0) == healed && $0.isSettled }
                }
            }
        }

        private static func values(_ device: Device) -> [String: String]? {
            device.store.dictionaryRepresentation as? [String: String]
        }
    }
}
