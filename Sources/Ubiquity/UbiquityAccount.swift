// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The account that this device is signed in to, for all apps of the person on it.
///
/// `ubiquity sign-in` does the same from a shell. Apps that run meanwhile follow at once.
public struct UbiquityAccount: Hashable, Sendable {
    /// Drawn by chance by the server.
    public var id: String
    /// What people call it.
    public var name: String
    /// The server's address.
    public var server: String
    /// What the account's owner sees this device as.
    public var deviceName: String

    /// The account that this device is signed in to; nil: none. Reads a small file.
    ///
    /// - Parameter home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/storage``.
    public static func current(home: String? = nil) throws -> UbiquityAccount? {
        try storageErrors { try DeviceHome(path: home).load() }.signedIn.map(UbiquityAccount.init)
    }

    /// Signs this device in by a code, which whoever runs the server gives out and which works once.
    ///
    /// What was written before the first sign-in goes into the account; where the account has a key
    /// already, its value stays, unless ``UbiquityConfiguration/firstSync`` says otherwise. Signed in
    /// to another account, the device has that account's values; what the first one had not yet sent
    /// waits on this device, and is sent when it is signed in again.
    ///
    /// - Parameters:
    ///   - server: Such as `https://ubiquity.example`.
    ///   - code: Such as `7KQ2-M9XD-4TRW`.
    ///   - deviceName: What the account's owner sees this device as; nil: the host's name.
    ///   - certificates: The only certificates that the server may be known by, as the text of a PEM
    ///     file: those of who signed its own, or its own if it signed itself. They are kept with the
    ///     sign-in. Nil: those that the system trusts.
    ///   - allowsPlainHTTP: Whether the code and the credential may travel without encryption to
    ///     another machine, where anybody on the way can read them.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notSignedIn`` for a code that is wrong,
    ///   used or too old, ``UbiquityError/Code/unreachable``, ``UbiquityError/Code/refused`` or
    ///   ``UbiquityError/Code/storage``.
    @discardableResult
    public static func signIn(
        server: String, code: String, deviceName: String? = nil, certificates: String? = nil,
        allowsPlainHTTP: Bool = false, home: String? = nil
    ) async throws -> UbiquityAccount {
        let security = ConnectionSecurity(
            certificates: certificates, allowsPlainHTTP: allowsPlainHTTP)
        return try await signIn(server, by: .code(code), deviceName, security, home)
    }

    /// Signs this device in by a token of an identity provider that the server trusts: for an app whose
    /// users have signed in to it already.
    ///
    /// The server makes an account for somebody who comes for the first time. The token is shown to the
    /// server once, and is not kept. Where the operator has set a time after which a device must bring
    /// another one, stores are ``UbiquityStatus/Connection/unauthorized`` then, and go on as offline: call
    /// this with a new token.
    ///
    /// - Parameters:
    ///   - server: Such as `https://ubiquity.example`.
    ///   - identityToken: A JSON Web Token (RFC 7519), made out for the audience that the server expects.
    ///   - deviceName: What the account's owner sees this device as; nil: the host's name.
    ///   - certificates: As ``signIn(server:code:deviceName:certificates:allowsPlainHTTP:home:)``.
    ///   - allowsPlainHTTP: Whether the token and the credential may travel without encryption to
    ///     another machine, where anybody on the way can read them.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notSignedIn`` for a token that the server
    ///   does not take, and says why; ``UbiquityError/Code/unreachable``,
    ///   ``UbiquityError/Code/refused`` or ``UbiquityError/Code/storage``.
    @discardableResult
    public static func signIn(
        server: String, identityToken: String, deviceName: String? = nil,
        certificates: String? = nil, allowsPlainHTTP: Bool = false, home: String? = nil
    ) async throws -> UbiquityAccount {
        let security = ConnectionSecurity(
            certificates: certificates, allowsPlainHTTP: allowsPlainHTTP)
        return try await signIn(server, by: .token(identityToken), deviceName, security, home)
    }

    private static func signIn(
        _ server: String, by proof: SignInProof, _ deviceName: String?,
        _ security: ConnectionSecurity, _ home: String?
    ) async throws -> UbiquityAccount {
        let home = try storageErrors { try DeviceHome(path: home) }
        do {
            return UbiquityAccount(
                try await home.signIn(
                    server: server, by: proof,
                    deviceName: deviceName ?? ProcessInfo.processInfo.hostName,
                    security: security
                ).account)
        } catch { throw UbiquityError(signIn: error) }
    }

    /// Signs this device out. Nothing happens if it is not signed in.
    ///
    /// The server is told to forget the device's credential; where it cannot be reached, the device
    /// is signed out all the same.
    ///
    /// - Parameters:
    ///   - wipes: Whether the account's values, those included that were not sent yet, are removed
    ///     from this device. Else they stay readable and writable, and what was not sent waits for
    ///     the next sign-in to the same account.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/storage``.
    public static func signOut(wipes: Bool = false, home: String? = nil) async throws {
        let home = try storageErrors { try DeviceHome(path: home) }
        let old = try storageErrors { try home.endSignIn(wipes: wipes) }
        if let old { _ = await home.giveUp(old) }
    }

    init(_ account: SignedInAccount) {
        id = account.account
        name = account.accountName
        server = account.server
        deviceName = account.deviceName
    }
}
