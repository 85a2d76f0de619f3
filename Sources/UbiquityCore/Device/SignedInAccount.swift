// SPDX-License-Identifier: Apache-2.0

/// The account that a device is signed in to, and the device's credential.
package struct SignedInAccount: Hashable, Sendable, Encodable {
    /// The server's address, such as `https://ubiquity.example`.
    package var server: String
    /// The account's identifier, which its server drew at random.
    package var account: String
    package var accountName: String
    /// 16 hexadecimal digits.
    package var device: String
    package var deviceName: String
    package var credential: String
    /// The only certificates accepted for the server, in PEM; nil means the system's.
    package var certificates: String?

    package init(
        server: String, account: String, accountName: String, device: String, deviceName: String,
        credential: String, certificates: String? = nil
    ) {
        self.server = server
        self.account = account
        self.accountName = accountName
        self.device = device
        self.deviceName = deviceName
        self.credential = credential
        self.certificates = certificates
    }
}
