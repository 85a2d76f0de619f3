// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
package import UbiquityCore
internal import UbiquityWire

extension AccountClient {
    /// The configuration that the account's server publishes.
    package static func config(
        of account: SignedInAccount
    ) async throws(LinkFailure) -> ServerConfig {
        let address = try ServerAddress(account.server, certificates: account.certificates)
        let config = try await ServerRequest(
            address: address, method: .GET, url: address.url("config")
        ).answer(WireConfig.self) { ServerConfig($0) }
        // Any JSON object can be decoded as a message without required fields.
        guard config.serverMilliseconds > 0 else {
            throw LinkFailure(.unreachable, "what answers at \(address) is no Ubiquity server")
        }
        return config
    }

    /// Checks whether the server still accepts this device's credential.
    package static func checkCredential(of account: SignedInAccount) async throws(LinkFailure) {
        try await request(.GET, account, "account").done()
    }
}
