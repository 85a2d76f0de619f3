// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// snippet.pair
func codeForNewDevice() async throws -> UbiquityPairingCode {
    let pairing = try await UbiquityAccount.pair()
    print("On the new device, type \(pairing.code), or scan \(pairing.wholeCode).")
    return pairing
}
// snippet.end

// snippet.sign-in
func signIn(_ server: String, _ code: String) async throws {
    let account = try await UbiquityAccount.signIn(server: server, code: code)
    print("signed in as \(account.name)")
}
// snippet.end

// snippet.request
func signInByApproval(_ server: String) async throws {
    let request = try await UbiquityAccount.requestSignIn(server: server, deviceName: "Kitchen")
    print("On a device that is signed in, scan or paste \(request.wholeCode).")
    let account = try await request.account()
    print("signed in as \(account.name)")
}
// snippet.end

// snippet.approve
func approve(_ userCode: String, asking isWanted: (String) -> Bool) async throws {
    let device = try await UbiquityAccount.waitingDevice(userCode: userCode)
    if isWanted("Let \(device.name) at \(device.address) in?") {
        try await UbiquityAccount.approve(device)
    } else {
        try await UbiquityAccount.deny(device)
    }
}
// snippet.end

// snippet.unlock
func unlock() async throws {
    let code = try await UbiquityAccount.unlockCode()
    print("On a device that has the account's key, scan \(code).")
    try await UbiquityAccount.unlock(code: code)
}

func unlockOther(scanned code: String) async throws {
    try await UbiquityAccount.handOver(code: code)
}
// snippet.end

// snippet.guest
func codeForGuest() async throws -> UbiquityPairingCode {
    try await UbiquityAccount.pair(
        stores: ["TEAMID.com.example.photos"], validFor: .seconds(7 * 86_400))
}
// snippet.end

// snippet.keeping
func signIn(
    _ server: String, _ code: String,
    asking keepsThisDevices: @escaping @Sendable ([String]) async -> Bool
) async throws {
    try await UbiquityAccount.signIn(server: server, code: code) { both in
        let keys = both.stores.flatMap(\.different)
        return await keepsThisDevices(keys) ? .device : .server
    }
}
// snippet.end

// snippet.devices
func printDevices() async throws {
    for device in try await UbiquityAccount.devices() {
        let name = device.isThisDevice ? "\(device.name) (this one)" : device.name
        print("\(name), last seen \(device.lastSeen)")
    }
}
// snippet.end

// snippet.sign-out
func signOutLost(_ device: UbiquityDevice) async throws {
    try await UbiquityAccount.signOutDevice(device.id)
}

func signOutOthers() async throws {
    let gone = try await UbiquityAccount.signOutOtherDevices()
    print("\(gone.count) devices are signed out.")
}
// snippet.end

// snippet.hide
_ = try await codeForNewDevice()
try await signIn("https://ubiquity.example", "7KQ2-M9XD-4TRW")
try await signInByApproval("https://ubiquity.example")
try await approve("7KQ2-M9XD") { _ in false }
_ = try await codeForGuest()
try await unlock()
try await unlockOther(scanned: "ubiquity:unlock;7KQ2")
try await signIn("https://ubiquity.example", "7KQ2-M9XD-4TRW") { _ in false }
try await printDevices()
for device in try await UbiquityAccount.devices() { try await signOutLost(device) }
try await signOutOthers()
