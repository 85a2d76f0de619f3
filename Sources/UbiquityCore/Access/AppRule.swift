// SPDX-License-Identifier: Apache-2.0

/// The apps for which a server keeps stores.
package enum AppRule: Hashable, Sendable {
    /// All apps.
    case open
    /// Only these apps.
    case registered(Set<StoreIdentifier>)

    package func admits(_ app: StoreIdentifier) -> Bool {
        switch self {
        case .open: true
        case .registered(let apps): apps.contains(app)
        }
    }
}
