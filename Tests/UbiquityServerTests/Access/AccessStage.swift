// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// The callers in the tests of access.
enum AccessCaller: String, CaseIterable {
    /// Without a credential, or with one that is none, or of the right form and nobody's.
    case none, garbage, forged
    /// Once a device's, or the operator's.
    case revoked, expired, oldOperator
    /// A device of another account.
    case eve
    /// Devices of the account, confined to another store than the one that is asked for, and to
    /// that one.
    case elsewhere, here
    case own
    case `operator`
    /// Anybody who can enter the data folder.
    case folder
}

/// A running server whose clock stands still, with ada's account, her devices and store, and
/// somebody of every sort who might want to get at them.
struct AccessStage {
    let server: RunningServer
    let ada: RunningDevice
    /// Ada's, too: what the addresses name.
    let phone: RunningDevice
    let credentials: [AccessCaller: String]

    /// A text that is in ada's values, keys and names, and nowhere else.
    static let secret = "adas-secret"
    static let store = "TEAM.adas-secret"
    static let account = "ada adas-secret"
    static let accountInPath = "ada%20adas-secret"

    static func with(_ body: (AccessStage) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let clock = TestClock(uptime: ServerClock.system.uptime)
        let configure = { (settings: inout ServerSettings) in
            settings.clock = clock.clock
            settings.signInAllowance = .init(burst: 10_000)
        }
        var old = ""
        try await withServer(in: folder, configure) { old = try $0.operatorCredential }
        try Data("ubo_renewed-by-the-operator-who-writes-it\n".utf8).write(
            to: URL(fileURLWithPath: folder.file("data/operator-credential")))
        try await withServer(in: folder, configure) { server in
            try await body(try await AccessStage(server, clock, oldOperator: old))
        }
    }

    private init(_ server: RunningServer, _ clock: TestClock, oldOperator: String) async throws {
        self.server = server
        ada = try await server.newDevice(account: Self.account)
        func device(stores: [String] = [], seconds: UInt64 = 0) async throws -> RunningDevice {
            try await server.furtherDevice(
                account: Self.accountInPath, stores: stores, seconds: seconds)
        }
        phone = try await device()
        let revoked = try await device()
        let expired = try await device(seconds: 60)
        clock.advance(seconds: 60)
        _ = try await server.send(
            "DELETE", "/v1/devices/\(revoked.id)", credential: revoked.credential)
        var rename = WireRename()
        rename.name = "phone \(Self.secret)"
        _ = try await server.send(
            "PATCH", "/v1/devices/\(phone.id)", credential: ada.credential, rename)
        try await ada.set("key \(Self.secret)", "value \(Self.secret)", store: Self.store)
        let eve = try await server.newDevice(account: "eve")
        try await eve.set("a", "b", store: "eves")
        credentials = [
            .garbage: "garbage", .forged: "ubd_" + String(repeating: "A", count: 43),
            .revoked: revoked.credential, .expired: expired.credential,
            .oldOperator: oldOperator, .eve: eve.credential,
            .elsewhere: try await device(stores: ["elsewhere"]).credential,
            .here: try await device(stores: ["x", Self.store]).credential,
            .own: ada.credential, .operator: try server.operatorCredential,
        ]
    }

    func send(
        _ caller: AccessCaller, _ route: AccessRoute, to path: String
    ) async throws -> RunningServer.Answer {
        let body = route.body.map { Array($0.utf8) }
        var headers = body == nil ? [:] : ["Content-Type": "application/json"]
        if route.path == "/v1/changes" { headers["Accept"] = "text/event-stream" }
        guard caller != .folder else {
            return try await server.sendInFolder(route.method, path, body: body, headers: headers)
        }
        return try await server.send(
            route.method, path, credential: credentials[caller], body: body, headers: headers)
    }

    /// All that ada can see of hers, but when a device was last seen, which is noted later.
    func everything() async throws -> [String] {
        var answers: [String] = []
        for path in ["account", "devices", "stores", "stores/\(Self.store)/changes"] {
            let answer = try await ada.get("/v1/\(path)").text
            answers.append(answer.replacing(/"seenMilliseconds":"[0-9]+"/, with: ""))
        }
        return answers
    }
}
