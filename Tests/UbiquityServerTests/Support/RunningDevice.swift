// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Synchronization
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

/// A device that is signed in to a test's server.
struct RunningDevice: Sendable {
    let server: RunningServer
    let id: String
    let account: String
    let credential: String

    func push(
        _ writes: [WireRecord], store: String = "notes", _ format: WireFormat = .json
    ) async throws -> RunningServer.Answer {
        var transaction = WireTransaction()
        transaction.writes = writes
        var push = WirePush()
        push.transactions = [transaction]
        return try await server.send(
            "POST", "/v1/stores/\(store)/changes", credential: credential, push, format)
    }

    /// Pushes a value and expects that it is applied.
    @discardableResult
    func set(_ key: String, _ value: String, store: String = "notes") async throws -> WirePushAnswer
    {
        try await push([.write(key, value)], store: store).message(WirePushAnswer.self)
    }

    func pull(since: String? = nil, store: String = "notes") async throws -> RunningServer.Answer {
        let query = since.map { "?since=\($0)" } ?? ""
        return try await get("/v1/stores/\(store)/changes\(query)")
    }

    func get(_ path: String) async throws -> RunningServer.Answer {
        try await server.send("GET", path, credential: credential)
    }
}

extension RunningServer {
    var operatorCredential: String {
        get throws {
            try String(contentsOfFile: folder.file("data/operator-credential"), encoding: .utf8)
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }

    func invite(_ name: String) async throws -> WireNewAccountAnswer {
        var account = WireNewAccount()
        account.name = name
        return try await send(
            "POST", "/v1/accounts", credential: operatorCredential, account
        ).message(WireNewAccountAnswer.self)
    }

    func signIn(code: String, name: String = "laptop") async throws -> Answer {
        var signIn = WireSignIn()
        signIn.code = code
        signIn.deviceName = name
        return try await send("POST", "/v1/sign-in", signIn)
    }

    /// A device of a new account.
    func newDevice(account: String = "ada") async throws -> RunningDevice {
        try await device(code: invite(account).code)
    }

    /// - Parameters:
    ///   - stores: To which it is confined; empty: it is not.
    ///   - seconds: How long its credential is good; 0: until it is revoked.
    func furtherDevice(
        account: String = "ada", stores: [String] = [], seconds: UInt64 = 0
    ) async throws -> RunningDevice {
        var code = WireNewCode()
        code.stores = stores
        code.credentialSeconds = seconds
        let answer = try await send(
            "POST", "/v1/accounts/\(account)/codes", credential: operatorCredential, code)
        return try await device(code: answer.message(WireNewAccountAnswer.self).code)
    }

    private func device(code: String) async throws -> RunningDevice {
        let answer = try await signIn(code: code).message(WireSignInAnswer.self)
        return RunningDevice(
            server: self, id: answer.device, account: answer.account,
            credential: answer.credential)
    }
}

/// Later with every call.
private let lastMilliseconds = Mutex<Int64>(0)

func nowMilliseconds() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

extension WireRecord {
    static func write(_ key: String, _ value: PropertyListValue?) -> WireRecord {
        let milliseconds = lastMilliseconds.withLock { last in
            last = max(last + 1, nowMilliseconds())
            return last
        }
        return write(key, value, at: milliseconds)
    }

    static func write(_ key: String, _ value: String) -> WireRecord {
        write(key, PropertyListValue.string(value))
    }

    static func write(
        _ key: String, _ value: PropertyListValue?, at milliseconds: Int64
    ) -> WireRecord {
        var record = WireRecord()
        record.key = key
        record.milliseconds = UInt64(milliseconds)
        if let value { record.value = WireValue(value) } else { record.deleted = true }
        return record
    }
}

extension WireNewStream.Store {
    init(_ identifier: String, since: String? = nil, saved: Bool? = nil) {
        self.init()
        self.identifier = identifier
        self.since = since ?? ""
        if let saved { self.saved = saved }
    }
}
