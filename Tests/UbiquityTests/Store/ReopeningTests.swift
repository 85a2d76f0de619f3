// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Testing

@testable import Ubiquity

@Suite struct `A store that is let go and made again at once` {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> UbiquitousKeyValueStore {
        var configuration = UbiquityConfiguration(
            identifier: "TEAM.com.example.reopened", home: folder.path)
        configuration.logger = .silent
        return try UbiquitousKeyValueStore(configuration: configuration)
    }

    @Test func `has all that was written to the one before`() throws {
        var store: UbiquitousKeyValueStore? = try open()
        for number in Int64(1)...20 {
            for key in 0..<50 { store?.set(number, forKey: "key \(key)") }
            store = nil
            store = try open()
            #expect(store?.longLong(forKey: "key 49") == number)
        }
    }

    @Test func `also when it was closed, once or twice, on another thread`() async throws {
        for number in Int64(1)...20 {
            let store = try open()
            store.set(number, forKey: "key")
            async let closing: Void = close(store)
            store.close()
            #expect(try open().longLong(forKey: "key") == number)
            await closing
        }
    }

    @concurrent private func close(_ store: UbiquitousKeyValueStore) async { store.close() }
}
