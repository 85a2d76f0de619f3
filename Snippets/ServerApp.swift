// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// snippet.app
struct Reading: Codable, Sendable {
    var celsius: Double
    var sensor: String
}

extension UbiquityKeys {
    static let interval = UbiquityKey("interval", default: 60)
    static let reading = UbiquityKey<Reading?>("reading")
    static let restarts = UbiquityKey("restarts", default: 0, policy: .counter)
}

let store = try UbiquitousKeyValueStore(identifier: "TEAMID.com.example.thermometer")

func report(_ celsius: Double) throws {
    try store.set(Reading(celsius: celsius, sensor: "attic"), for: .reading)
}

func followInterval() async {
    for await seconds in store.values(for: .interval) {
        print("measuring every \(seconds) s")
    }
}
// snippet.end

// snippet.end-of-service
func waitForTheEnd() async {
    signal(SIGTERM, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGTERM)
    await withCheckedContinuation { continuation in
        source.setEventHandler {
            source.cancel()
            continuation.resume()
        }
        source.resume()
    }
    store.synchronize()
}
// snippet.end

// snippet.sign-in
func signInOnce() async throws {
    guard store.status.connection == .signedOut,
        let code = CommandLine.arguments.dropFirst().first
    else { return }
    let account = try await UbiquityAccount.signIn(
        server: "https://ubiquity.example", code: code)
    print("signed in to \(account.name) as \(account.deviceName)")
}
// snippet.end

// snippet.hide
try await signInOnce()
try store.update(.restarts) { $0 += 1 }
try report(19.5)
let task = Task { await followInterval() }
await waitForTheEnd()
task.cancel()
