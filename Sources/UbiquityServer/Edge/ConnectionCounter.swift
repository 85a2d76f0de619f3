// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Counts connections, in total and by address.
///
/// State: `counts`, guarded by its lock, because connections come and go on every event loop.
final class ConnectionCounter: Sendable {
    enum Entry: Hashable, Sendable {
        case welcome
        case tooMany
        case tooManyFromThere
    }

    private struct Counts {
        var all = 0
        var addresses: [IPAddress: Int] = [:]
    }

    private let counts = Mutex(Counts())
    private let max: Int
    private let perAddressMax: Int
    private let proxies: TrustedProxies

    init(max: Int, perAddressMax: Int, proxies: TrustedProxies) {
        (self.max, self.perAddressMax, self.proxies) = (max, perAddressMax, proxies)
    }

    /// Each call, even a refused one, must be followed by ``leave(_:)``.
    /// - Parameter address: Nil if it has none. A trusted proxy has no limit of its own.
    func enter(_ address: IPAddress?) -> Entry {
        counts.withLock { counts in
            counts.all += 1
            guard let name = counted(address) else {
                return counts.all <= max ? .welcome : .tooMany
            }
            let count = counts.addresses[name, default: 0] + 1
            counts.addresses[name] = count
            if counts.all > max { return .tooMany }
            return count <= perAddressMax ? .welcome : .tooManyFromThere
        }
    }

    func leave(_ address: IPAddress?) {
        counts.withLock { counts in
            counts.all -= 1
            guard let name = counted(address), let count = counts.addresses[name] else { return }
            counts.addresses[name] = count > 1 ? count - 1 : nil
        }
    }

    var count: Int { counts.withLock(\.all) }

    private func counted(_ address: IPAddress?) -> IPAddress? {
        guard let address, !proxies.contains(address) else { return nil }
        return address.neighbourhood
    }
}
