// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

/// Tests that values come out as they went in, wherever they have been.
extension EndToEndTests.ContractTests {
    /// Vector 19.
    @Test func `every value is identical after device, wire, server restart and second device`()
        async throws
    {
        try await onStage { stage in
            let server = try await ServerProcess.started(stage)
            let all = EveryValue.values.merging(EveryValue.deep) { $1 }
            let homeA = try await server.signIn("a", isFirst: true)
            let a = try Device(home: homeA)
            try Self.set(all, in: a)
            try await a.store.synchronizeNow()
            a.close()
            try await server.stop()
            try await server.start()
            let b = try Device(home: await server.signIn("b"))
            try await b.store.synchronizeNow()
            EveryValue.expect(all, in: b)
            Self.expectObjects(all, in: b)
            b.close()
            try await server.stop()
            let again = try Device(home: homeA)
            defer { again.close() }
            EveryValue.expect(all, in: again)
        }
    }

    /// As an app does it, with Foundation's objects.
    private static func set(_ values: [Key: PropertyListValue], in device: Device) throws {
        for (key, value) in values where key != nested {
            device.store.set(value.boxed, forKey: key.string)
        }
        // Not by a dictionary of Foundation: its keys of other normalisation fall together there.
        let value = try #require(values[nested])
        try device.store.write([nested: .value(value)])
    }

    private static func expectObjects(_ values: [Key: PropertyListValue], in device: Device) {
        for (key, value) in values where key != nested {
            let object = device.store.object(forKey: key.string)
            let isSame = object.flatMap { try? PropertyListValue($0) } == value
            #expect(isSame, "\(key)")
        }
    }

    private static let nested = try! Key("nested")
}
