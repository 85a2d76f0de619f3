// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityWire

/// Accounts, sign-in and devices.
struct AccountRoutes: Sendable {
    let storage: any ServerStorage
    let writer: BlockingThreads
    let readers: BlockingThreads
    let authenticator: Authenticator
    let hub: PushHub
    let attempts: RateLimiter<String>
    let settings: ServerSettings

    @Sendable func signIn(_ request: Request, _ context: ServerContext) async throws -> Response {
        try attempts.take(context.remoteAddress)
        let format = try request.answerFormat
        let message = try await request.readMessage(WireSignIn.self)
        guard let code = SignInCode(typed: message.code) else { throw StorageError.codeInvalid }
        let credential = Secret.random(prefix: Secret.devicePrefix)
        let device = NewDevice(
            title: Self.title(message.deviceName), credential: SecretHash(of: credential),
            devicesPerAccountMax: settings.devicesPerAccountMax)
        let now = settings.clock.now()
        let signedIn = try await writer.run { [storage] in
            try storage.redeem(code.hash, by: device, now: now)
        }
        let answer = WireSignInAnswer.with {
            $0.account = signedIn.account.id.string
            $0.accountName = signedIn.account.name.string
            $0.device = signedIn.device.name.id.description
            $0.credential = credential
        }
        return Response(answer, format)
    }

    @Sendable func create(_ request: Request, _ context: ServerContext) async throws -> Response {
        try await authenticator.requireOperator(request.bearer)
        let format = try request.answerFormat
        let message = try await request.readMessage(WireNewAccount.self)
        guard let name = AccountName(message.name) else { throw Self.nameInvalid }
        let enrollment = Enrollment(storage: storage, settings: settings)
        let invitation = try await writer.run { try enrollment.createAccount(name) }
        return Response(WireNewAccountAnswer(invitation), format)
    }

    @Sendable func newCode(_ request: Request, _ context: ServerContext) async throws -> Response {
        try await authenticator.requireOperator(request.bearer)
        let format = try request.answerFormat
        guard let name = AccountName(try context.parameters.text("name")) else {
            throw StorageError.noSuchAccount
        }
        let enrollment = Enrollment(storage: storage, settings: settings)
        let invitation = try await writer.run { try enrollment.newCode(name) }
        return Response(WireNewAccountAnswer(invitation), format)
    }

    @Sendable func show(_ request: Request, _ context: ServerContext) async throws -> Response {
        let own = try await authenticator.device(request.bearer)
        let format = try request.answerFormat
        let (account, devices) = try await readers.run { [storage] in
            (try storage.account(own.account), try storage.devices(of: own.account))
        }
        guard let account else { throw Problem.notFound }
        let answer = WireAccount.with {
            $0.id = account.id.string
            $0.name = account.name.string
            $0.devices = devices.map(WireDevice.init)
        }
        return Response(answer, format)
    }

    @Sendable func showDevice(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let own = try await authenticator.device(request.bearer)
        let format = try request.answerFormat
        let name = try Self.device(context, of: own.account)
        let devices = try await readers.run { [storage] in try storage.devices(of: own.account) }
        guard let device = devices.first(where: { $0.name == name }) else {
            throw Problem.notFound
        }
        return Response(WireDevice(device), format)
    }

    @Sendable func revokeDevice(
        _ request: Request, _ context: ServerContext
    ) async throws -> Response {
        let own = try await authenticator.device(request.bearer)
        let device = try Self.device(context, of: own.account)
        let now = settings.clock.now()
        let isRevoked = try await writer.run { [storage] in try storage.revoke(device, now: now) }
        guard isRevoked else { throw Problem.notFound }
        authenticator.forget(device)
        hub.end(device)
        return Response(status: .noContent)
    }

    private static func device(
        _ context: ServerContext, of account: AccountID
    ) throws(Problem) -> DeviceName {
        guard let id = DeviceID(try context.parameters.text("id")) else { throw .notFound }
        return DeviceName(account: account, id: id)
    }

    /// What a device calls itself, made fit to be shown.
    private static func title(_ text: String) -> String {
        let visible = text.unicodeScalars.filter { !CharacterSet.controlCharacters.contains($0) }
        var title = String(String.UnicodeScalarView(visible))
            .trimmingCharacters(in: .whitespaces)
        while title.utf8.count > AccountName.bytesMax { title.removeLast() }
        return title.isEmpty ? "device" : title
    }

    private static var nameInvalid: Problem {
        .malformed("\(AdministrationError.nameInvalid("")).")
    }
}

extension WireNewAccountAnswer {
    fileprivate init(_ invitation: Invitation) {
        self.init()
        account = invitation.account.id.string
        code = invitation.code
        expiresMilliseconds = UInt64(clamping: invitation.expires)
    }
}

extension WireDevice {
    fileprivate init(_ device: Device) {
        self.init()
        id = device.name.id.description
        name = device.title
        createdMilliseconds = UInt64(clamping: device.created)
        seenMilliseconds = UInt64(clamping: device.seen)
    }
}
