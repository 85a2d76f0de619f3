// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The account that this device is signed in to, for all of the person's apps on it.
///
/// `ubiquity sign-in` does the same from a shell. Running apps follow at once.
public struct UbiquityAccount: Hashable, Sendable {
    /// A random identifier that the server chose.
    public var id: String
    /// The account's name.
    public var name: String
    /// The server's address.
    public var server: String
    /// The device's name, as the account's owner sees it.
    public var deviceName: String
    /// Whether this device knows that the account is sealed (`ubiquity encryption`), with its key or
    /// without.
    public var isSealed: Bool

    /// The account that this device is signed in to; nil if there is none. Reads a small file.
    ///
    /// - Parameter home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/storage``.
    public static func current(home: String? = nil) throws -> UbiquityAccount? {
        let state = try storageErrors { try DeviceHome(path: home).load() }
        return state.signedIn.map { account in
            UbiquityAccount(account, isSealed: state.sealing?.isSealed ?? false)
        }
    }

    /// Signs this device in with a code, which the server operator or another device of the person
    /// (``pair(stores:validFor:home:)``) makes and which works once.
    ///
    /// Values written before the first sign-in go into the account. If the account already has a
    /// key, its value stays, unless ``UbiquityConfiguration/firstSync`` says otherwise. A device
    /// that signs in to another account gets that account's values; unsent writes of the first
    /// account wait on this device until it is signed in to that one again.
    /// <!-- Snippets/AddingADevice.swift: sign-in -->
    /// ```swift
    /// func signIn(_ server: String, _ code: String) async throws {
    ///     let account = try await UbiquityAccount.signIn(server: server, code: code)
    ///     print("signed in as \(account.name)")
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - server: For example `https://ubiquity.example`; nil for the address in the code.
    ///   - code: For example `7KQ2-M9XD-4TRW`; of a link, all that follows its `#`. Without a server, the
    ///     whole link. A code that begins with `ubiquity:`, always as a whole, brings the key of a sealed
    ///     account, see ``UbiquityPairingCode/wholeCode``.
    ///   - deviceName: The device's name for the account's owner; nil for the host's name.
    ///   - certificates: The only certificates accepted for the server, as the text of a PEM file:
    ///     those of the issuer, or the server's own if it is self-signed. They are stored with the
    ///     sign-in. Nil for those that the system trusts.
    ///   - allowsPlainHTTP: Whether the code and the credential may be sent unencrypted to another
    ///     machine, where anybody on the way can read them.
    ///   - allowsUnsealed: Whether a person has said that the account is not sealed. Otherwise, this throws
    ///     `refused` if only the server says so, and this device has had a sealed account, or the code has
    ///     a secret that no device has answered: the server could be after values that it can read.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notSignedIn`` for a code that is
    ///   wrong, used or expired, ``UbiquityError/Code/unreachable``, ``UbiquityError/Code/refused``
    ///   or ``UbiquityError/Code/storage``.
    @discardableResult
    public static func signIn(
        server: String? = nil, code: String, deviceName: String? = nil, certificates: String? = nil,
        allowsPlainHTTP: Bool = false, allowsUnsealed: Bool = false, home: String? = nil
    ) async throws -> UbiquityAccount {
        let security = ConnectionSecurity(
            certificates: certificates, allowsPlainHTTP: allowsPlainHTTP)
        return try await signIn(server, by: .code(code), deviceName, security, allowsUnsealed, home)
    }

    /// Signs this device in with a token of an identity provider that the server trusts, for an app
    /// whose users have already signed in there.
    ///
    /// The server creates an account for a new person. The token is sent to the server once, and is
    /// not stored. If the operator limits how long such a sign-in lasts, stores become
    /// ``UbiquityStatus/Connection/unauthorized`` after that time and continue as if offline: call
    /// this again with a new token.
    ///
    /// - Parameters:
    ///   - server: For example `https://ubiquity.example`.
    ///   - identityToken: A JSON Web Token (RFC 7519) for the audience that the server expects.
    ///   - deviceName: The device's name for the account's owner; nil for the host's name.
    ///   - certificates: As
    ///     ``signIn(server:code:deviceName:certificates:allowsPlainHTTP:allowsUnsealed:home:)``.
    ///   - allowsPlainHTTP: Whether the token and the credential may be sent unencrypted to another
    ///     machine, where anybody on the way can read them.
    ///   - allowsUnsealed: Likewise.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notSignedIn`` and the reason if the
    ///   server rejects the token, ``UbiquityError/Code/unreachable``,
    ///   ``UbiquityError/Code/refused`` or ``UbiquityError/Code/storage``.
    @discardableResult
    public static func signIn(
        server: String, identityToken: String, deviceName: String? = nil,
        certificates: String? = nil, allowsPlainHTTP: Bool = false, allowsUnsealed: Bool = false,
        home: String? = nil
    ) async throws -> UbiquityAccount {
        let security = ConnectionSecurity(
            certificates: certificates, allowsPlainHTTP: allowsPlainHTTP)
        return try await signIn(
            server, by: .token(identityToken), deviceName, security, allowsUnsealed, home)
    }

    static func signIn(
        _ server: String?, by proof: SignInProof, _ deviceName: String?,
        _ security: ConnectionSecurity, _ allowsUnsealed: Bool, _ home: String?,
        review: DeviceHome.FirstSyncReview? = nil
    ) async throws -> UbiquityAccount {
        let home = try storageErrors { try DeviceHome(path: home) }
        var (server, proof) = (server, proof)
        var secret: HandoverSecret?
        if case .code(let text) = proof {
            let code = try await accountErrors { try KeyCode(given: text) }
            let link = server == nil ? SignInLink(code.front) : nil
            (server, proof) = (link?.server ?? server, .code(link?.code ?? code.signInCode))
            secret = code.secret
        }
        guard let server else {
            throw UbiquityError(.refused, "the code has no address of a server; give it")
        }
        return try await accountErrors {
            UbiquityAccount(
                try await home.signIn(
                    server: server, by: proof,
                    deviceName: deviceName ?? DeviceHome.usualDeviceName,
                    security: security, secret: secret, acceptsUnsealed: { _ in allowsUnsealed },
                    review: review
                ))
        }
    }

    /// Signs this device out. Does nothing if it is not signed in.
    ///
    /// The server is asked to revoke the device's credential. If it cannot be reached, the device
    /// is signed out all the same.
    ///
    /// - Parameters:
    ///   - wipes: Whether the account's values, including unsent ones, are removed from this
    ///     device. If not, they stay readable and writable, and unsent writes wait for the next
    ///     sign-in to the same account.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/storage``.
    public static func signOut(wipes: Bool = false, home: String? = nil) async throws {
        let home = try storageErrors { try DeviceHome(path: home) }
        let old = try storageErrors { try home.endSignIn(wipes: wipes) }
        if let old { _ = await home.giveUp(old) }
    }

    init(_ signIn: DeviceHome.SignIn) {
        self.init(signIn.account, isSealed: signIn.sealing.isSealed)
    }

    private init(_ account: SignedInAccount, isSealed: Bool) {
        id = account.account
        name = account.accountName
        server = account.server
        deviceName = account.deviceName
        self.isSealed = isSealed
    }
}

/// Converts errors of the server and of this device's files to those of the public API. Others stay.
func accountErrors<Result>(_ body: () async throws -> Result) async throws -> Result {
    do { return try await body() } catch let error as LinkFailure {
        throw UbiquityError(error)
    } catch let error
        where error is KeyringRefusal || error is SealingError || error is StoreIdentifierError
    {
        throw UbiquityError(.refused, "\(error)")
    } catch let doubt as UnsealedDoubt {
        throw UbiquityError(.refused, "\(doubt), so this device was not signed in")
    } catch let error where error is HomeError || error is LocalStorageError {
        throw UbiquityError(.storage, "\(error)")
    }
}
