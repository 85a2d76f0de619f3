// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    @Suite struct EveryValueTests {
        private static let values: [Key: PropertyListValue] = {
            // No literal of a dictionary: its strings are equal where only Unicode's forms differ.
            let leaves: KeyValuePairs<String, PropertyListValue> = [
                "string": .string("text"), "empty string": .string(""),
                "lines": .string("a\r\nb\tc\u{0}d"), "composed": .string("e\u{301} \u{e9}"),
                "true": .boolean(true), "false": .boolean(false), "one": .integer(1),
                "least": .integer(.min), "greatest": .integer(.max),
                "unsigned": .unsigned(.max), "1.0": .real(1), "third": .real(1.0 / 3),
                "minus zero": .real(-0.0), "tiny": .real(.leastNonzeroMagnitude),
                "nan": .real(.nan), "infinity": .real(.infinity),
                "minus infinity": .real(-.infinity), "date": .date(802_771_200.123456),
                "old date": .date(-63_114_076_800.5), "data": .data([0, 255, 1, 128]),
                "empty data": .data([]), "empty array": .array([]),
                "empty dictionary": .dictionary([:]), "👩‍👩‍👧‍👦 🇺🇳": .string("🏳️‍🌈"),
                "cafe\u{301}": .string("decomposed"), "caf\u{e9}": .string("composed"),
            ]
            let inner = Dictionary(uniqueKeysWithValues: leaves.map { (ExactString($0), $1) })
            let nested = PropertyListValue.dictionary([
                "all": .dictionary(inner), "list": .array(leaves.map(\.value)),
            ])
            let pairs = leaves.map { (try! Key($0), $1) } + [(try! Key("nested"), nested)]
            return Dictionary(uniqueKeysWithValues: pairs)
        }()

        /// As deep as values may be.
        private static var deep: [Key: PropertyListValue] {
            var array = PropertyListValue.array([])
            var dictionary = PropertyListValue.dictionary([:])
            for _ in 1..<PropertyListValue.depthMax {
                array = .array([array])
                dictionary = .dictionary(["a": dictionary])
            }
            return [try! Key("deep array"): array, try! Key("deep dictionary"): dictionary]
        }

        @Test func `every value is the same on a second device after a restart of the server`()
            async throws
        {
            try await onStage { stage in
                var server = try await ServerProcess.started(stage)
                let all = Self.values.merging(Self.deep) { $1 }
                let homeA = try await server.signIn("a", isFirst: true)
                let a = try Device(home: homeA)
                try a.store.write(all.mapValues(Content.value))
                try await a.store.synchronizeNow()
                a.close()
                try await server.stop()
                try await server.start()
                let b = try Device(home: await server.signIn("b"))
                try await b.store.synchronizeNow()
                Self.compare(b.store.values, all)
                b.close()
                try await server.stop()
                let again = try Device(home: homeA)
                defer { again.close() }
                Self.compare(again.store.values, all)
            }
        }

        @Test func `a binary export imported elsewhere has the same values`() async throws {
            try await roundTrip(Self.withoutLookAlikes, ["--binary"])
        }

        @Test func `an XML export of what XML can hold, imported elsewhere, has the same values`()
            async throws
        {
            let impossible = ["lines", "date", "old date", "minus zero", "nested"]
            try await roundTrip(
                Self.withoutLookAlikes.filter { !impossible.contains($0.key.string) }, [])
        }

        @Test func `an export that would lose one of two look-alike keys is refused`() async throws
        {
            try await onStage { stage in
                let home = stage.path("a")
                let a = try Device(home: home)
                try a.store.write(Self.values.mapValues(Content.value))
                #expect(a.store.synchronize())
                #expect(a.store.dictionaryRepresentation.count == Self.values.count - 1)
                a.close()
                let export = try await stage.run([
                    "export", stage.path("export.plist"), "--binary", "--local", "--home", home,
                    "--store", Device.identifier,
                ])
                #expect(export.status == 65)
                #expect(export.errors.contains("normalisation"))
            }
        }

        /// Foundation's dictionaries take the composed and the decomposed key for one.
        private static var withoutLookAlikes: [Key: PropertyListValue] {
            var values = values.filter { $0.value != .string("decomposed") }
            guard let key = try? Key("nested"), case .dictionary(var nested) = values[key],
                case .dictionary(var inner) = nested["all"]
            else { return values }
            inner = inner.filter { $0.value != .string("decomposed") }
            nested["all"] = .dictionary(inner)
            values[key] = .dictionary(nested)
            return values
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
                let imported = try await stage.run(["import", file, "--home", homeB] + store)
                #expect(imported.status == 0, "\(imported)")
                let b = try Device(home: homeB)
                defer { b.close() }
                Self.compare(b.store.values, values)
            }
        }

        private static func compare(
            _ actual: [Key: PropertyListValue], _ expected: [Key: PropertyListValue]
        ) {
            #expect(Set(actual.keys) == Set(expected.keys))
            // Deep values are not worth printing.
            for (key, value) in expected {
                let isSame = actual[key] == value
                #expect(isSame, "\(key)")
            }
        }
    }
}
