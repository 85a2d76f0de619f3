// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

/// Tests of values that a store does not accept.
extension EndToEndTests.ContractTests {
    private final class CustomObject {}

    /// Vector 6.
    @Test func `a URL, a custom object, NSNull and its containers are refused, with an error each`()
        async throws
    {
        let url = try #require(URL(string: "http://x"))
        try await withTwoDevices { pair in
            let (a, b) = (pair.a, pair.b)
            a.store.set("old", forKey: "a")
            try await agreement(a, b) { $0.count == 1 }
            var errors = a.store.errors.makeAsyncIterator()
            let refused: [(value: Any, reason: String)] = [
                (url, "a: a URL is not a property-list value"),
                (CustomObject(), "a: a CustomObject is not a property-list value"),
                (NSNull(), "a: a NSNull is not a property-list value"),
                ([NSNull()], "a[0]: a NSNull is not a property-list value"),
            ]
            for (value, reason) in refused {
                a.store.set(value, forKey: "a")
                let error = await errors.next(isolation: nil)
                #expect(error?.code == .invalid)
                #expect(
                    error?.description.hasSuffix(reason) == true, "\(String(describing: error))")
                #expect(a.store.string(forKey: "a") == "old")
            }
            a.store.set("value", forKey: "")
            let last = await errors.next(isolation: nil)
            #expect(last?.description.hasSuffix("a key must not be empty") == true)
            #expect(a.isSettled)
            a.store.set("new", forKey: "a")
            try await agreement(a, b) { $0.values.contains(.string("new")) }
        }
    }

    /// Vector 7, its first half.
    @Test func `a key of 64 bytes passes, one of 65 is refused, and so 22 three-byte characters`()
        async throws
    {
        let passing = [String(repeating: "k", count: 64), String(repeating: "京", count: 21) + "k"]
        let refused = [String(repeating: "k", count: 65), String(repeating: "京", count: 22)]
        try await keys(passing, refused, "64 bytes of UTF-8", options: [])
    }

    /// Vector 7, its second half.
    @Test func `where the server says 128 UTF-16 units, so many pass and no more`() async throws {
        let passing = [String(repeating: "京", count: 128), String(repeating: "😀", count: 64)]
        try await keys(
            passing, passing.map { $0 + "k" }, "128 UTF-16 units",
            options: ["--key-limit", "128-utf16-units"])
    }

    private func keys(
        _ passing: [String], _ refused: [String], _ limit: String, options: [String]
    ) async throws {
        try await withTwoDevices(options: options) { pair in
            var errors = pair.a.store.errors.makeAsyncIterator()
            for key in passing { pair.a.store.set("value", forKey: key) }
            for key in refused {
                pair.a.store.set("value", forKey: key)
                let error = await errors.next(isolation: nil)
                #expect(error?.code == .invalid)
                #expect(error?.description.contains(limit) == true)
            }
            try await agreement(pair.a, pair.b) { !$0.isEmpty }
            #expect(Set(pair.b.store.values.keys.map(\.string)) == Set(passing))
        }
    }

    @Test func `a key that only the app's own limit let in is refused by the server, and kept`()
        async throws
    {
        try await onStage { stage in
            let server = try await ServerProcess.started(stage)
            let a = try Device(home: stage.path("home-a")) { $0.keyLimit = .utf16Units(128) }
            defer { a.close() }
            let observer = Observer(a.store)
            let key = String(repeating: "k", count: 65)
            a.store.set("value", forKey: key)
            a.store.set("fits", forKey: "k")
            _ = try await server.newHome("a", isFirst: true)
            try await until("the refusal") { !observer.all.isEmpty }
            #expect(
                observer.all == [.init(NSUbiquitousKeyValueStoreQuotaViolationChange, [key], [:])])
            try await until("the rest") { a.isSettled }
            #expect(a.store.dictionaryRepresentation as? [String: String] == ["k": "fits"])
            let kept = try a.store.refusedWrites()
            #expect(kept.map(\.key) == [key])
            #expect(kept.first?.value as? String == "value")
        }
    }

    /// Vector 8.
    @Test func `1,024 keys pass, the next one is refused by name, and overwriting one passes`()
        async throws
    {
        try await withTwoDevices { pair in
            let (a, b) = (pair.a, pair.b)
            let observer = Observer(a.store)
            for number in Int64(1)...1_024 { a.store.set(number, forKey: "key \(number)") }
            try await agreement(a, b) { $0.count == 1_024 }
            a.store.set(true, forKey: "one more")
            try await until("the refusal") { !observer.all.isEmpty }
            #expect(a.store.object(forKey: "one more") == nil)
            a.store.set("overwritten", forKey: "key 7")
            try await agreement(a, b) { $0.values.contains(.string("overwritten")) }
            #expect(b.store.values.count == 1_024)
            a.store.removeObject(forKey: "key 8")
            a.store.set("there is room", forKey: "one more")
            try await agreement(a, b) { $0.values.contains(.string("there is room")) }
            #expect(
                observer.all == [
                    .init(NSUbiquitousKeyValueStoreQuotaViolationChange, ["one more"], [:])
                ])
        }
    }

    /// Vector 9.
    @Test func `values of 1,048,576 bytes together pass, one byte more is refused`() async throws {
        try await withTwoDevices { pair in
            let (a, b) = (pair.a, pair.b)
            let observer = Observer(a.store)
            for number in 1...4 { a.store.set(Data(count: 1 << 18), forKey: "quarter \(number)") }
            try await agreement(a, b) { $0.count == 4 }
            #expect(a.store.status.bytes == 1_048_576)
            a.store.set("x", forKey: "one byte")
            try await until("the first refusal") { observer.all.count == 1 }
            a.store.set(Data(count: (1 << 18) + 1), forKey: "quarter 4")
            try await until("the second refusal") { observer.all.count == 2 }
            let quarter = PropertyListValue.data([UInt8](repeating: 0, count: 1 << 18))
            #expect(
                observer.all == [
                    .init(2, ["one byte"], [:]), .init(2, ["quarter 4"], ["quarter 4": quarter]),
                ])
            // What shrinks passes.
            a.store.set("x", forKey: "quarter 4")
            try await agreement(a, b) { $0.values.contains(.string("x")) }
        }
    }

    /// Vector 9, its second half.
    @Test func `one value of exactly 1,048,576 bytes passes alone`() async throws {
        try await withTwoDevices { pair in
            let (a, b) = (pair.a, pair.b)
            let text = String(repeating: "x", count: 1_048_576)
            a.store.set(text, forKey: "a")
            try await agreement(a, b) { $0.count == 1 }
            #expect(b.store.string(forKey: "a") == text)
            var errors = a.store.errors.makeAsyncIterator()
            a.store.set(text + "x", forKey: "a")
            let error = await errors.next(isolation: nil)
            #expect(error?.code == .refused)
            #expect(error?.description.contains("1048577 bytes") == true)
        }
    }

    @Test func `of two that overflow only together the second is put back, told and kept`()
        async throws
    {
        try await withTwoDevices { pair in
            let (a, b) = (pair.a, pair.b)
            let observer = Observer(b.store)
            a.store.set("old", forKey: "shared")
            try await agreement(a, b) { $0.count == 1 }
            try await UbiquityAccount.signOut(home: b.home)
            try await until("b's sign-out") { b.store.status.connection == .signedOut }
            try Self.fill(a, "a")
            try await a.store.synchronizeNow()
            // By the clock of the machine that both share, b's write must be the later one.
            try await Task.sleep(for: .milliseconds(5))
            try Self.fill(b, "b")
            try await UbiquityAccount.signIn(
                server: pair.server.url, code: pair.server.newCode(isFirst: false), home: b.home)
            try await agreement(a, b) { $0.count == 2 }
            #expect(b.texts == ["shared": "by a"])
            try await until("the refusal") {
                observer.all.contains { $0.reason == 2 && $0.keys == ["b", "shared"] }
            }
            let kept = try b.store.refusedWrites()
            #expect(Set(kept.map(\.key)) == ["b", "shared"])
            #expect(kept.contains { $0.value as? String == "by b" })
        }
    }

    private static func fill(_ device: Device, _ name: String) throws {
        try device.store.performBatch {
            try $0.set(Data(count: 600_000), forKey: name)
            try $0.set("by \(name)", forKey: "shared")
        }
    }
}
