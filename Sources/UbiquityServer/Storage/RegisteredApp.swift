// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A registered app: an identifier that a server restricted to registered apps accepts.
package struct RegisteredApp: Hashable, Sendable {
    package var identifier: StoreIdentifier
    /// The server's milliseconds since 1970.
    package var registered: Int64
}
