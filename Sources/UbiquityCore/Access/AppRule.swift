// SPDX-License-Identifier: Apache-2.0

/// For which apps a server keeps stores.
package enum AppRule: Hashable, Sendable {
    /// For all.
    case open
    /// For these alone.
    case registered(Set<StoreIdentifier>)

    package func admits(_ app: StoreIdentifier) -> Bool {
        switch self {
        case .open: true
        case .registered(let apps): apps.contains(app)
        }
    }
}
