// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import Foundation
import Testing

@testable import Ubiquity

/// What apps written for Apple's systems ask before they use a store. Each test has a process of its
/// own, as an app has: what is asked about is the default store's device.
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
            let (direct, onMain) = (Signal(), Signal())
            let name = Notification.Name.NSUbiquityIdentityDidChange
            let center = NotificationCenter.default
            _ = center.addObserver(forName: name, object: nil, queue: nil) { _ in
                if !MainQueue.isCurrent { direct.fire() }
            }
            _ = center.addObserver(forName: name, object: nil, queue: .main) { _ in
                if MainQueue.isCurrent { onMain.fire() }
            }
            #expect(UbiquitousKeyValueStore.default.status.account == nil)
            #expect(FileManager.default.ubiquityIdentityToken == nil)
            try device.home.update { $0.signIn(.unreachable("ann")) }
            try await onMain.wait(times: 1)
            // The same account by another credential is no other identity.
            try device.home.update { $0.signIn(.unreachable("ann", device: "00000000000000a2")) }
            try device.home.update { $0.signIn(.unreachable("bob")) }
            try await onMain.wait(times: 2)
            try device.home.update { $0.signOut() }
            try await onMain.wait(times: 3)
            #expect(direct.times == 3)
            #expect(onMain.times == 3)
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
