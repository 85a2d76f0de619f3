// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A registered app: a store's identifier that a server of registered apps takes.
package struct RegisteredApp: Hashable, Sendable {
    package var identifier: StoreIdentifier
    /// The server's milliseconds since 1970.
    package var registered: Int64
}
