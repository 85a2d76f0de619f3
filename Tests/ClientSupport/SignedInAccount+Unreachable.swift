// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

extension SignedInAccount {
    /// An account of that name and identifier, at an address where nobody answers.
    package static func unreachable(_ name: String, device: String = "00000000000000a1") -> Self {
        SignedInAccount(
            server: "http://127.0.0.1:9", account: name, accountName: name, device: device,
            deviceName: "test", credential: "credential")
    }
}
