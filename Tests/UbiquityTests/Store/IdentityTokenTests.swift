// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import ClientTestSupport
import Foundation
import Synchronization
import Testing
import UbiquityCore

@testable import Ubiquity

/// The token that apps written for Apple's systems check before they use a store. Each test has a
/// process of its own, as an app has, because the token belongs to the default store's device.
@Suite struct `The identity token` {
    @Test func `is nil without an account, equal as long as it is the same one, and then another`()
        async
    {
        await #expect(processExitsWith: .success) {
            let device = try DefaultDevice()
            #expect(FileManager.default.ubiquityIdentityToken == nil)
            try device.home.update { $0.signIn(.unreachable("ann")) }
            try await until("ann") { FileManager.default.ubiquityIdentityToken != nil }
            let ann = FileManager.default.ubiquityIdentityToken
            #expect(ann?.isEqual(FileManager.default.ubiquityIdentityToken) == true)

            try device.home.update { $0.signIn(.unreachable("bob")) }
            try await until("bob") {
                FileManager.default.ubiquityIdentityToken?.isEqual(ann) == false
            }
            try device.home.update { $0.signIn(.unreachable("ann")) }
            try await until("ann's return") {
                FileManager.default.ubiquityIdentityToken?.isEqual(ann) == true
            }
            try device.home.update { $0.signOut() }
            try await until("nobody") { FileManager.default.ubiquityIdentityToken == nil }
        }
    }

    @Test func `is posted when it changes, also to an observer on the main queue, and only then`()
        async
    {
        await #expect(processExitsWith: .success) {
            let device = try DefaultDevice()
            #expect(UbiquitousKeyValueStore.default.status.account == nil)
            let (direct, onMain) = (IdentityObserver(queue: nil), IdentityObserver(queue: .main))
            #expect(FileManager.default.ubiquityIdentityToken == nil)
            try device.home.update { $0.signIn(.unreachable("ann")) }
            try await until("ann") { onMain.posted.count == 1 }
            // The same account by another credential is no other identity.
            try device.home.update { $0.signIn(.unreachable("ann", device: "00000000000000a2")) }
            try device.home.update { $0.signIn(.unreachable("bob")) }
            try await until("bob") { onMain.posted.count == 2 }
            try device.home.update { $0.signOut() }
            try await until("nobody") { onMain.posted.count == 3 && direct.posted.count == 3 }
            #expect(onMain.posted.map(\.account) == ["ann", "bob", nil])
            #expect(onMain.posted.map(\.isOnMain) == [true, true, true])
            #expect(direct.posted.map(\.account) == ["ann", "bob", nil])
            #expect(direct.posted.map(\.isOnMain) == [false, false, false])
        }
    }
}

/// Records who is signed in whenever a change of identity is posted, until the process ends.
private final class IdentityObserver: Sendable {
    struct Posted: Sendable {
        var account: String?
        var isOnMain: Bool
    }

    private let all = Mutex<[Posted]>([])

    var posted: [Posted] { all.withLock(\.self) }

    init(queue: OperationQueue?) {
        _ = NotificationCenter.default.addObserver(
            forName: .NSUbiquityIdentityDidChange, object: nil, queue: queue
        ) { _ in
            let token = FileManager.default.ubiquityIdentityToken as? NSData
            let account = token.map { String(decoding: $0 as Data, as: UTF8.self) }
            self.all.withLock { $0.append(Posted(account: account, isOnMain: MainQueue.isCurrent)) }
        }
    }
}

/// The device of the default store, in a folder of its own.
private struct DefaultDevice {
    private let folder: TemporaryFolder
    let home: DeviceHome

    init() throws {
        folder = try TemporaryFolder()
        home = try DeviceHome(path: folder.path)
        var configuration = UbiquityConfiguration(
            identifier: "TEAM.com.example.default", home: folder.path)
        configuration.logger = .silent
        try UbiquitousKeyValueStore.configureDefault(configuration)
    }
}

#endif
