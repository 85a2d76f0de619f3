// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore
import UbiquityServer

/// The operator's operations, in either of two ways.
enum OperatorAuthority {
    /// In the server's data folder.
    case folder(Administration)
    /// By requests to the server.
    case credential(OperatorClient)

    // MARK: Accounts

    func createAccount(_ name: String) async throws -> DeviceCode {
        switch self {
        case .folder(let administration):
            DeviceCode(try administration.createAccount(name: name))
        case .credential(let client): try await client.createAccount(name: name)
        }
    }

    func newCode(_ name: String, _ terms: CredentialTerms) async throws -> DeviceCode {
        switch self {
        case .folder(let administration):
            return DeviceCode(try administration.newCode(accountName: name, terms: terms))
        case .credential(let client):
            return try await client.newCode(
                accountName: name, stores: (terms.stores ?? []).map(\.string).sorted(),
                credentialSeconds: terms.milliseconds.map { $0 / 1_000 })
        }
    }

    /// - Parameter take: Called with each piece of the archive.
    func export(
        _ name: String, take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
        switch self {
        case .folder(let administration):
            var export = try administration.export(accountName: name)
            while let piece = try export.next() { try take(piece) }
        case .credential(let client): try await client.export(accountName: name, take: take)
        }
    }

    /// Sorted by name.
    func accounts() async throws -> [ServerAccount] {
        switch self {
        case .folder(let administration):
            try administration.accountSummaries().map(ServerAccount.init)
        case .credential(let client): try await client.accounts()
        }
    }

    func rename(account name: String, to newName: String) async throws {
        switch self {
        case .folder(let administration):
            _ = try administration.rename(accountName: name, to: newName)
        case .credential(let client):
            _ = try await client.rename(accountName: name, to: newName)
        }
    }

    /// - Returns: Whether the server's file is known to contain nothing of it any more.
    func erase(account name: String) async throws -> Bool {
        switch self {
        case .folder(let administration): return try administration.erase(accountName: name)
        case .credential(let client):
            try await client.erase(accountName: name)
            return true
        }
    }

    // MARK: Devices

    func devices(of account: String) async throws -> [ServerDevice] {
        switch self {
        case .folder(let administration):
            try administration.devices(accountName: account).map(ServerDevice.init)
        case .credential(let client): try await client.devices(accountName: account)
        }
    }

    func rename(
        device: DeviceID, of account: String, to name: String
    ) async throws -> ServerDevice {
        switch self {
        case .folder(let administration):
            ServerDevice(
                try administration.rename(device, accountName: account, displayName: name))
        case .credential(let client):
            try await client.rename(
                device: device.description, accountName: account, to: name)
        }
    }

    func revoke(device: DeviceID, of account: String) async throws {
        switch self {
        case .folder(let administration):
            try administration.revoke(device, accountName: account)
        case .credential(let client):
            try await client.revoke(device: device.description, accountName: account)
        }
    }

    // MARK: Apps and the audit trail

    func apps() async throws -> ServerApps {
        switch self {
        case .folder(let administration):
            let apps = try administration.apps().map {
                ServerApps.App(identifier: $0.identifier.string, registered: $0.registered)
            }
            return ServerApps(isRegisteredOnly: nil, apps: apps)
        case .credential(let client): return try await client.apps()
        }
    }

    func register(_ app: StoreIdentifier) async throws {
        switch self {
        case .folder(let administration): _ = try administration.register(app)
        case .credential(let client): try await client.register(app: app.string)
        }
    }

    func remove(_ app: StoreIdentifier) async throws {
        switch self {
        case .folder(let administration): try administration.removeApp(app)
        case .credential(let client): try await client.remove(app: app.string)
        }
    }

    /// The newest first.
    func audit(max: Int) async throws -> [ServerAuditEntry] {
        switch self {
        case .folder(let administration):
            try administration.audit(max: max).map(ServerAuditEntry.init)
        case .credential(let client): try await client.audit(max: max)
        }
    }
}

extension DeviceCode {
    fileprivate init(_ invitation: Invitation) {
        self.init(code: invitation.code, expiresMilliseconds: invitation.expiresMilliseconds)
    }
}

extension ServerAccount {
    fileprivate init(_ summary: AccountSummary) {
        self.init(
            id: summary.account.id.string, name: summary.account.name.string,
            createdMilliseconds: summary.account.createdMilliseconds,
            devices: summary.devices.map(ServerDevice.init))
    }
}

extension ServerDevice {
    fileprivate init(_ device: UbiquityServer.Device) {
        self.init(
            id: device.reference.id.description, name: device.displayName,
            createdMilliseconds: device.createdMilliseconds,
            seenMilliseconds: device.seenMilliseconds,
            expiresMilliseconds: device.rights.expiresMilliseconds,
            stores: (device.rights.stores ?? []).map(\.string).sorted())
    }
}

extension ServerAuditEntry {
    fileprivate init(_ entry: AuditEntry) {
        self.init(
            number: entry.number, time: entry.time, action: entry.event.action.rawValue,
            account: entry.event.account?.string, device: entry.event.device?.description,
            actor: entry.event.actor.word, actorDevice: entry.event.actor.device?.description,
            count: Int64(entry.count), last: entry.last, detail: entry.event.detail)
    }
}
