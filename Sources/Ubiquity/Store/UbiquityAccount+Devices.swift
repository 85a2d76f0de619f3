// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import UbiquityCore

/// A device that is signed in to the person's account.
public struct UbiquityDevice: Hashable, Sendable, Identifiable {
    /// 16 hexadecimal digits, unique in the account.
    public var id: String
    /// The name that its owner gave it.
    public var name: String
    /// When it signed in, by the server's clock.
    public var signedIn: Date
    /// When the server last heard of it, to about a minute.
    public var lastSeen: Date
    /// When it is signed out; nil if it stays signed in.
    public var expires: Date?
    /// The identifiers of the stores that it may use, sorted; nil for all.
    public var stores: [String]?
    /// Whether it is the device that this program runs on.
    public var isThisDevice: Bool

    init(_ device: ServerDevice, own: String) {
        id = device.id
        name = device.name
        signedIn = Date(milliseconds: device.createdMilliseconds)
        lastSeen = Date(milliseconds: device.seenMilliseconds)
        expires = device.expiresMilliseconds.map(Date.init(milliseconds:))
        stores = device.stores.isEmpty ? nil : device.stores
        isThisDevice = device.id == own
    }
}

extension UbiquityAccount {
    /// The devices that are signed in to the account, the oldest first.
    /// <!-- Snippets/AddingADevice.swift: devices -->
    /// ```swift
    /// func printDevices() async throws {
    ///     for device in try await UbiquityAccount.devices() {
    ///         let name = device.isThisDevice ? "\(device.name) (this one)" : device.name
    ///         print("\(name), last seen \(device.lastSeen)")
    ///     }
    /// }
    /// ```
    ///
    /// - Parameter home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notSignedIn``,
    ///   ``UbiquityError/Code/unreachable``, or ``UbiquityError/Code/refused`` for a device that is
    ///   confined to some stores.
    public static func devices(home: String? = nil) async throws -> [UbiquityDevice] {
        try await request(home) { account, _ in
            try await AccountClient.devices(account).map { UbiquityDevice($0, own: account.device) }
        }
    }

    /// Renames a device of the account.
    ///
    /// - Parameters:
    ///   - id: ``UbiquityDevice/id``.
    ///   - name: Its new name, with at least one visible character. A server shortens it to 128 bytes.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Returns: The device with the name that the server stored.
    /// - Throws: ``UbiquityError``, as ``devices(home:)``; ``UbiquityError/Code/refused`` if there is
    ///   no such device.
    @discardableResult
    public static func renameDevice(
        _ id: String, to name: String, home: String? = nil
    ) async throws -> UbiquityDevice {
        try await request(home) { account, home in
            UbiquityDevice(
                try await home.rename(device: id, to: name, account), own: account.device)
        }
    }

    /// Signs another device out permanently, for example one that was lost.
    ///
    /// Its credential is no longer valid, and its connections end within a second. What it has
    /// already received stays on it. This device is signed out by ``signOut(wipes:home:)``.
    ///
    /// - Parameters:
    ///   - id: ``UbiquityDevice/id``.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError``, as ``devices(home:)``; ``UbiquityError/Code/refused`` if there is
    ///   no such device, ``UbiquityError/Code/invalid`` for this one.
    public static func signOutDevice(_ id: String, home: String? = nil) async throws {
        try await request(home) { account, _ in
            guard id != account.device else {
                throw UbiquityError(.invalid, "this is the device that the program runs on")
            }
            try await AccountClient.revoke(device: id, account)
        }
    }

    /// Signs out all other devices, also those that sign in meanwhile, and voids codes and approvals
    /// that they have given.
    ///
    /// - Parameter home: As ``UbiquityConfiguration/home``.
    /// - Returns: The devices that were signed out.
    /// - Throws: ``UbiquityError``, as ``devices(home:)``. Some may have been signed out then.
    @discardableResult
    public static func signOutOtherDevices(
        home: String? = nil
    ) async throws -> [UbiquityDevice] {
        try await request(home) { account, _ in
            try await AccountClient.signOutOthers(account).map {
                UbiquityDevice($0, own: account.device)
            }
        }
    }

    /// Sends a request with this device's sign-in.
    static func request<Result>(
        _ home: String?, _ body: (SignedInAccount, DeviceHome) async throws -> Result
    ) async throws -> Result {
        let home = try storageErrors { try DeviceHome(path: home) }
        guard let account = try storageErrors({ try home.load() }).signedIn else {
            throw UbiquityError(.notSignedIn, "this device is not signed in")
        }
        return try await accountErrors { try await body(account, home) }
    }
}
