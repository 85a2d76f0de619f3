// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    /// The numbered promises from the sixth on, each under its sentence; the first five need no
    /// server, and are with the tests of the library.
    @Suite struct ContractTests {
        /// All that an app was told, once what is under way has come to its end.
        func posted(_ observer: Observer, by peer: Device) async throws -> [Observer.Posted] {
            peer.store.set(UUID().uuidString, forKey: Self.lastKey)
            try await until("the last of the news") { observer.all.last?.keys == [Self.lastKey] }
            return observer.all.dropLast()
        }

        private static let lastKey = "last"
    }
}
