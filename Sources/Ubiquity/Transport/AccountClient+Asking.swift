// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
package import UbiquityCore
internal import UbiquityWire

extension AccountClient {
    /// What the account's server makes known to everybody.
    package static func config(
        of account: SignedInAccount
    ) async throws(LinkFailure) -> ServerConfig {
        let address = try ServerAddress(account.server, certificates: account.certificates)
        let config = try await ServerRequest(
            address: address, method: .GET, url: address.url("config")
        ).answer(WireConfig.self) { ServerConfig($0) }
        // Anything may be read as a message without fields.
        guard config.serverMilliseconds > 0 else {
            throw LinkFailure(.unreachable, "what answers at \(address) is no Ubiquity server")
        }
        return config
    }

    /// Asks whether the server still takes this device's credential.
    package static func checkCredential(of account: SignedInAccount) async throws(LinkFailure) {
        try await request(.GET, account, "account").done()
    }
}
