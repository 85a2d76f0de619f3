// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

func show(_ text: String) { print(text) }

func printAccount() throws {
    // snippet.account
    if let account = try UbiquityAccount.current() {
        show("\(account.name) on \(account.server), this device is \(account.deviceName)")
    } else {
        show("not signed in")
    }
    // snippet.end
}

func greet() throws {
    // snippet.current
    let isSignedIn = try UbiquityAccount.current() != nil
    show(isSignedIn ? "Sign out" : "Sign in")
    // snippet.end
}

// snippet.sign-in
func signIn(code: String) async {
    do {
        let account = try await UbiquityAccount.signIn(
            server: "https://ubiquity.example", code: code)
        show("Signed in to \(account.name).")
    } catch {
        show("\(error)")
    }
}
// snippet.end

// snippet.token
func signIn(token: String) async throws {
    try await UbiquityAccount.signIn(
        server: "https://ubiquity.example", identityToken: token, deviceName: "Kitchen")
}
// snippet.end

// snippet.keeping
func signIn(
    code: String, asking keepsOwn: @escaping @Sendable (_ keys: [String]) async -> Bool
) async throws {
    let server = "https://ubiquity.example"
    try await UbiquityAccount.signIn(server: server, code: code) { both in
        await keepsOwn(both.stores.flatMap(\.different)) ? .device : .server
    }
}
// snippet.end

// snippet.first-sync
func question(for firstSync: UbiquityFirstSync) -> String {
    let different = firstSync.stores.reduce(0) { $0 + $1.different.count }
    let added = firstSync.stores.reduce(0) { $0 + $1.onlyHere.count }
    return "\(different) values differ from the account's, \(added) are only on this device."
}
// snippet.end

func signOut() async throws {
    // snippet.sign-out
    try await UbiquityAccount.signOut(wipes: true)  // for a device that is given away
    // snippet.end
}

func addDevice() async throws {
    // snippet.pair
    let pairing = try await UbiquityAccount.pair()
    show("On the new device, type \(pairing.code).")
    // snippet.end
    // snippet.pairing-code
    let minutes = Int(pairing.expires.timeIntervalSinceNow / 60)
    show("Scan \(pairing.link) within \(minutes) minutes.")
    // snippet.end
}

func requestSignIn() async throws {
    // snippet.request
    let request = try await UbiquityAccount.requestSignIn(server: "https://ubiquity.example")
    show("On a device that is signed in, scan or paste \(request.wholeCode).")
    let account = try await request.account()  // returns once it is approved
    show("Signed in to \(account.name).")
    // snippet.end
}

// snippet.pending
func finish(_ request: UbiquityPendingSignIn) async -> UbiquityAccount? {
    do { return try await request.account() } catch {
        show("Not approved: \(error)")
        return nil
    }
}
// snippet.end

func approve(_ typed: String) async throws {
    // snippet.waiting
    let device = try await UbiquityAccount.waitingDevice(userCode: typed)
    show("\(device.name) at \(device.address) wants to sign in.")
    // snippet.end
}

// snippet.approve
func answer(_ device: UbiquityWaitingDevice, isWanted: Bool) async throws {
    if isWanted {
        try await UbiquityAccount.approve(device)
    } else {
        try await UbiquityAccount.deny(device)
    }
}
// snippet.end

// snippet.approve-confined
func approveAsGuest(_ device: UbiquityWaitingDevice) async throws {
    var device = device
    device.stores = ["TEAMID.com.example.photos"]
    device.validFor = .seconds(86_400)
    try await UbiquityAccount.approve(device)
}
// snippet.end

func unlock() async throws {
    // snippet.unlock
    let code = try await UbiquityAccount.unlockCode()
    show("On a device that has the account's key, scan \(code).")
    try await UbiquityAccount.unlock(code: code)  // returns once it has given it
    show("This device is unlocked.")
    // snippet.end
}

// snippet.recover
func recover(_ recoveryKey: String) async throws {
    try await UbiquityAccount.unlock(code: recoveryKey)
}
// snippet.end

// snippet.hand-over
func unlockOther(scanned: String) async throws {
    try await UbiquityAccount.handOver(code: scanned)
}
// snippet.end

func listDevices() async throws {
    // snippet.devices
    for device in try await UbiquityAccount.devices() {
        show("\(device.name)\(device.isThisDevice ? " (this one)" : "")")
    }
    // snippet.end
    // snippet.device
    let forgotten = try await UbiquityAccount.devices().filter {
        !$0.isThisDevice && $0.lastSeen.timeIntervalSinceNow < -90 * 86_400
    }
    // snippet.end
    show("\(forgotten.count)")
}

// snippet.rename
func rename(_ device: UbiquityDevice, to name: String) async throws -> String {
    try await UbiquityAccount.renameDevice(device.id, to: name).name
}
// snippet.end

// snippet.sign-out-device
func reportLost(_ device: UbiquityDevice) async throws {
    try await UbiquityAccount.signOutDevice(device.id)
    show("\(device.name) gets no changes any more.")
}
// snippet.end

func signOutOthers() async throws {
    // snippet.sign-out-others
    let others = try await UbiquityAccount.signOutOtherDevices()
    show("\(others.count) devices are signed out.")
    // snippet.end
}

#if !canImport(Darwin)
func checkIdentity() {
    // snippet.identity-token
    guard FileManager.default.ubiquityIdentityToken != nil else {
        return show("Sign in to keep your notes on all devices.")
    }
    // snippet.end
}

func followIdentity() -> any NSObjectProtocol {
    // snippet.identity-change
    let observer = NotificationCenter.default.addObserver(
        forName: .NSUbiquityIdentityDidChange, object: nil, queue: .main
    ) { _ in
        show("The account has changed.")
    }
    // snippet.end
    return observer
}
#endif
