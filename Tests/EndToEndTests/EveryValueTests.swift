// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    @Suite struct EveryValueTests {
        @Test func `a binary export imported elsewhere has the same values`() async throws {
            try await roundTrip(EveryValue.withoutLookAlikes, ["--binary"])
        }

        @Test func `an XML export of what XML can hold, imported elsewhere, has the same values`()
            async throws
        {
            let impossible = ["lines", "date", "old date", "minus zero", "nested"]
            try await roundTrip(
                EveryValue.withoutLookAlikes.filter { !impossible.contains($0.key.string) }, [])
        }

        @Test
        func `a key with a zero byte survives everywhere, and is not the key before the byte`()
            async throws
        {
            let values: [Key: PropertyListValue] = [
                try Key("a"): .string("1"), try Key("a\0"): .string("2"),
                try Key("a\0b"): .dictionary(["c\0d": .string("e\0")]),
            ]
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let a = try Device(home: try await server.newHome("a", isFirst: true))
                try a.store.write(values.mapValues(Content.value))
                try await a.store.synchronizeNow()
                a.close()
                let b = try Device(home: try await server.newHome("b"))
                try await agreement(b) { $0 == values }
                b.close()
                let store = ["--store", Device.identifier, "--local"]
                let list = try await stage.run(["list", "--home", b.home] + store)
                for text in ["a ", "a\\u0000 ", "a\\u0000b "] {
                    #expect(list.output.contains("\n\(text)"), "\(list.output)")
                }
                let (file, archive) = (stage.path("export.plist"), stage.path("ada.json"))
                try await stage.run(["export", file, "--binary", "--home", b.home] + store)
                    .expectSuccess()
                try await stage.succeed("account", "export", "--output", archive, "--home", b.home)
                for (name, source) in [("c", file), ("d", archive)] {
                    let home = stage.path(name)
                    try await stage.run(["import", source, "--home", home] + store).expectSuccess()
                    let device = try Device(home: home)
                    #expect(device.store.values == values, "\(name)")
                    device.close()
                }
            }
        }

        @Test func `of two look-alike keys an export loses none: XML is refused`() async throws {
            try await onStage { stage in
                let (homeA, homeB) = (stage.path("a"), stage.path("b"))
                let a = try Device(home: homeA)
                try a.store.write(EveryValue.values.mapValues(Content.value))
                #expect(a.store.synchronize())
                #expect(a.store.dictionaryRepresentation.count == EveryValue.values.count - 1)
                a.close()
                let file = stage.path("export.plist")
                let store = ["--store", Device.identifier, "--local"]
                let xml = try await stage.run(["export", file, "--home", homeA] + store)
                #expect(xml.status == 65)
                #expect(xml.errors.contains("normalisation"))
                try await stage.run(["export", file, "--binary", "--home", homeA] + store)
                    .expectSuccess()
                try await stage.run(["import", file, "--home", homeB] + store).expectSuccess()
                let b = try Device(home: homeB)
                defer { b.close() }
                #expect(b.store.values == EveryValue.values)
            }
        }

        private func roundTrip(
            _ values: [Key: PropertyListValue], _ options: [String]
        ) async throws {
            try await onStage { stage in
                let (homeA, homeB) = (stage.path("a"), stage.path("b"))
                let a = try Device(home: homeA)
                try a.store.write(values.mapValues(Content.value))
                #expect(a.store.synchronize())
                a.close()
                let file = stage.path("export.plist")
                let store = ["--store", Device.identifier, "--local"]
                let export = try await stage.run(
                    ["export", file, "--home", homeA] + options + store)
                #expect(export.status == 0 && export.errors.isEmpty, "\(export)")
                let attributes = try FileManager.default.attributesOfItem(atPath: file)
                #expect(attributes[.posixPermissions] as? Int == 0o600)
                let imported = try await stage.run(["import", file, "--home", homeB] + store)
                #expect(imported.status == 0, "\(imported)")
                let b = try Device(home: homeB)
                defer { b.close() }
                EveryValue.expect(values, in: b)
            }
        }
    }
}
