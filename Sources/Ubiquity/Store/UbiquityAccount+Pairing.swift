// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import UbiquityCore

/// A code with which one further device signs in to the person's account, once.
public struct UbiquityPairingCode: Hashable, Sendable {
    /// For example `7KQ2-M9XD-4TRW`.
    public var code: String
    /// The server's address.
    public var server: String
    /// When the code expires, by the server's clock: usually after ten minutes. It also ends when this
    /// device is signed out.
    public var expires: Date
    let pin: String?
    /// Nil if the account is not sealed.
    let secret: HandoverSecret?

    /// The address with the code, for a QR code: `https://ubiquity.example#7KQ2-M9XD-4TRW`.
    ///
    /// For a server whose certificate is signed by itself, its key comes after the code. All that
    /// follows the `#` is a code for
    /// ``UbiquityAccount/signIn(server:code:deviceName:certificates:allowsPlainHTTP:allowsUnsealed:home:)``.
    public var link: String { SignInLink(server: server, code: code, pin: pin).text }
    /// The same with what brings the key of a sealed account, if this device has it: it begins with
    /// `ubiquity:` then, and is a secret, to be shown on this device's screen and sent nowhere. With the
    /// link or the ``code``, the new device is locked. Of an account that is not sealed, it is the link.
    public var wholeCode: String { KeyCode(front: link, secret: secret).text }
}

/// A sign-in of this device that waits until somebody approves it on another device.
public struct UbiquityPendingSignIn: Sendable {
    /// The code to show to the person, who types it on a device that is signed in: `7KQ2-M9XD`.
    public var userCode: String { pending.userCode }
    /// The server's address with the user code, for a QR code.
    public var link: String { pending.link.text }
    /// The same with a secret, which begins with `ubiquity:`. Whoever approves it tells this device with
    /// it whether the account is sealed, and gives it the key. Show it on this device's screen, and send it
    /// nowhere. With the user code or the link, only the server says that an account is not sealed, which
    /// ``account()`` refuses.
    public var wholeCode: String { KeyCode(front: link, secret: secret).text }
    /// When the request expires, by the server's clock: after ten minutes.
    public var expires: Date { Date(milliseconds: pending.expiresMilliseconds) }

    let pending: PendingSignIn
    let secret: HandoverSecret
    let allowsUnsealed: Bool
    let home: DeviceHome

    /// Waits until the sign-in is approved, and signs this device in for all its apps.
    ///
    /// Asks the server every few seconds. Cancel the task to stop waiting.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/refused`` if the sign-in was denied,
    ///   ``UbiquityError/Code/notSignedIn`` if nobody approved it in time,
    ///   ``UbiquityError/Code/unreachable`` or ``UbiquityError/Code/storage``; `CancellationError`. Also
    ///   `refused` if no device has answered the secret of ``wholeCode``, or this one has had a sealed
    ///   account, and the server says that this one is not: see `allowsUnsealed`.
    public func account() async throws -> UbiquityAccount {
        try await accountErrors {
            let signIn = try await home.signIn(
                approved: pending, secret: secret, acceptsUnsealed: { _ in allowsUnsealed })
            return UbiquityAccount(signIn)
        }
    }
}

/// A device that waits for an approval. Show its name and address to the person before approving it.
public struct UbiquityWaitingDevice: Hashable, Sendable {
    /// The code that it shows.
    public var userCode: String
    /// The name that it gave itself.
    public var name: String
    /// The address from which it asked the server: an IP address, of IPv6 the first 64 bits.
    public var address: String
    /// The identifiers of the stores that it asks for, sorted; nil for all.
    public var stores: [String]?
    /// The time for which it asks to be signed in; nil for until it is signed out.
    public var validFor: Duration?
    /// When its request expires, by the server's clock.
    public var expires: Date
    /// Nil if only the user code was given.
    let secret: HandoverSecret?
}

extension UbiquityAccount {
    /// Makes a code for a further device of the person, with at most the rights of this one.
    /// <!-- Snippets/AddingADevice.swift: pair -->
    /// ```swift
    /// func codeForNewDevice() async throws -> UbiquityPairingCode {
    ///     let pairing = try await UbiquityAccount.pair()
    ///     print("On the new device, type \(pairing.code), or scan \(pairing.wholeCode).")
    ///     return pairing
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - stores: The identifiers of the only stores that the device may use, at most 64; nil for
    ///     those that this one may use.
    ///   - validFor: How long the device stays signed in, in whole seconds; nil for as long as this
    ///     one may. It is never longer than that.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notSignedIn``,
    ///   ``UbiquityError/Code/unreachable``, or ``UbiquityError/Code/refused`` for stores that this
    ///   device may not use itself, and by a server of an earlier version.
    public static func pair(
        stores: [String]? = nil, validFor: Duration? = nil, home: String? = nil
    ) async throws -> UbiquityPairingCode {
        try await request(home) { account, home in
            let code = try await AccountClient.makeCode(
                stores: stores ?? [], credentialSeconds: validFor?.wholeSeconds, account)
            let handover = try await home.sealing().handover(toStores: stores ?? [])
            let secret = handover == .notSealed ? nil : HandoverSecret.random()
            if let secret { try await AccountClient.leave(handover, with: secret, account) }
            return UbiquityPairingCode(
                code: code.code, server: code.server ?? account.server,
                expires: Date(milliseconds: code.expiresMilliseconds), pin: code.pin,
                secret: secret)
        }
    }

    /// Asks the server to sign this device in once somebody has approved it on a device that is
    /// signed in, for example with `ubiquity approve`.
    /// <!-- Snippets/AddingADevice.swift: request -->
    /// ```swift
    /// func signInByApproval(_ server: String) async throws {
    ///     let request = try await UbiquityAccount.requestSignIn(server: server, deviceName: "Kitchen")
    ///     print("On a device that is signed in, scan or paste \(request.wholeCode).")
    ///     let account = try await request.account()
    ///     print("signed in as \(account.name)")
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - server: For example `https://ubiquity.example`.
    ///   - deviceName: The name that the approver sees; nil for the host's name.
    ///   - stores: The identifiers of the stores to ask for; nil for all. The approver decides.
    ///   - validFor: How long to ask to be signed in, in whole seconds; nil for until it is signed
    ///     out.
    ///   - certificates: As
    ///     ``signIn(server:code:deviceName:certificates:allowsPlainHTTP:allowsUnsealed:home:)``.
    ///   - allowsPlainHTTP: Likewise.
    ///   - allowsUnsealed: Likewise. Also needed where only the ``UbiquityPendingSignIn/userCode`` is shown,
    ///     or the server operator approves: then only the server says that the account is not sealed.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError``, as for a sign-in by code.
    public static func requestSignIn(
        server: String, deviceName: String? = nil, stores: [String]? = nil,
        validFor: Duration? = nil, certificates: String? = nil, allowsPlainHTTP: Bool = false,
        allowsUnsealed: Bool = false, home: String? = nil
    ) async throws -> UbiquityPendingSignIn {
        let home = try storageErrors { try DeviceHome(path: home) }
        let security = ConnectionSecurity(
            certificates: certificates, allowsPlainHTTP: allowsPlainHTTP)
        return try await accountErrors {
            let pending = try await AccountClient.requestSignIn(
                server: server, deviceName: deviceName ?? DeviceHome.usualDeviceName,
                stores: stores ?? [], credentialSeconds: validFor?.wholeSeconds, security: security)
            return UbiquityPendingSignIn(
                pending: pending, secret: .random(), allowsUnsealed: allowsUnsealed, home: home)
        }
    }

    /// The device that waits for an approval with this code.
    ///
    /// - Parameters:
    ///   - userCode: The code that the device shows, in any case, with or without its hyphen; or what it
    ///     shows for scanning, which may have the secret for the key of a sealed account.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/refused`` if no device waits with this
    ///   code, ``UbiquityError/Code/notSignedIn`` or ``UbiquityError/Code/unreachable``.
    public static func waitingDevice(
        userCode: String, home: String? = nil
    ) async throws -> UbiquityWaitingDevice {
        try await request(home) { account, _ in
            let code = try KeyCode(given: userCode)
            let found = try await AccountClient.signInRequest(userCode: code.userCode, account)
            return UbiquityWaitingDevice(
                userCode: code.userCode, name: found.deviceName, address: found.address,
                stores: found.stores.isEmpty ? nil : found.stores,
                validFor: found.credentialSeconds.map { .seconds($0) },
                expires: Date(milliseconds: found.expiresMilliseconds), secret: code.secret)
        }
    }

    /// Lets a waiting device sign in to this device's account, with at most the rights of this one.
    ///
    /// The grant is what ``UbiquityWaitingDevice/stores`` and ``UbiquityWaitingDevice/validFor`` say,
    /// which may be changed before. If the device's code has a secret, it learns whether the account is
    /// sealed, and gets the key, or those of its stores.
    /// <!-- Snippets/AddingADevice.swift: approve -->
    /// ```swift
    /// func approve(_ userCode: String, asking isWanted: (String) -> Bool) async throws {
    ///     let device = try await UbiquityAccount.waitingDevice(userCode: userCode)
    ///     if isWanted("Let \(device.name) at \(device.address) in?") {
    ///         try await UbiquityAccount.approve(device)
    ///     } else {
    ///         try await UbiquityAccount.deny(device)
    ///     }
    /// }
    /// ```
    ///
    /// - Throws: ``UbiquityError``, as ``waitingDevice(userCode:home:)``, and
    ///   ``UbiquityError/Code/refused`` for stores that this device may not use itself.
    public static func approve(
        _ device: UbiquityWaitingDevice, home: String? = nil
    ) async throws {
        try await request(home) { account, home in
            // The new device looks for them as soon as it is approved.
            if let secret = device.secret {
                let handover = try await home.sealing().handover(toStores: device.stores ?? [])
                try await AccountClient.leave(handover, with: secret, account)
            }
            try await AccountClient.approve(
                userCode: device.userCode, stores: device.stores ?? [],
                credentialSeconds: device.validFor?.wholeSeconds, account)
        }
    }

    /// Denies a waiting device the sign-in. It is told so.
    /// - Throws: ``UbiquityError``, as ``waitingDevice(userCode:home:)``.
    public static func deny(_ device: UbiquityWaitingDevice, home: String? = nil) async throws {
        try await request(home) { account, _ in
            try await AccountClient.deny(userCode: device.userCode, account)
        }
    }
}

extension Duration {
    /// At least 1: 0 would mean that there is no end.
    fileprivate var wholeSeconds: Int64 { max(1, components.seconds) }
}
