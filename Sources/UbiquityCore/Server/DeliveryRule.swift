// SPDX-License-Identifier: Apache-2.0

/// Decides which devices have the entries of a store, or of one of its keys.
///
/// A device has what it has reported as saved, and what it wrote: it saves a write before it sends it.
package struct DeliveryRule: Hashable, Sendable {
    /// An entry of the store, whose value may be a deletion.
    package struct Item: Hashable, Sendable {
        package var revision: Int64
        package var author: DeviceID

        package init(revision: Int64, author: DeviceID) {
            self.revision = revision
            self.author = author
        }
    }

    /// In the order of their revisions.
    private let entries: [Item]
    private let authors: Set<DeviceID>
    private let compactedRevision: Int64

    /// - Parameter entries: All those asked for, in any order.
    package init(_ entries: [Item], in lineage: Lineage) {
        self.entries = entries.sorted { $0.revision < $1.revision }
        authors = Set(entries.lazy.map(\.author))
        compactedRevision = lineage.compactedRevision
    }

    /// - Parameter passed: The revision up to which the device has reported the store as saved; nil
    ///   if it has reported nothing.
    package func delivery(to device: DeviceID, passed: Int64?) -> Delivery {
        guard passed != nil || authors.contains(device) else { return Delivery() }
        let passed = passed ?? 0
        let behind = entries.reversed().prefix { $0.revision > passed }
            .count { $0.author != device }
        // Below that revision, the device may not know of a deletion that is not among the entries
        // any more.
        let isCurrent = behind == 0 && passed >= compactedRevision
        return Delivery(isCurrent: isCurrent, behind: behind, hasStore: true)
    }
}

/// The part of a store, or of a key of it, that a device has.
package struct Delivery: Hashable, Sendable {
    /// It has everything.
    package var isCurrent = false
    /// The entries that it does not have, as far as the server knows. 0 if it never had the store.
    package var behind = 0
    /// It has had some of the store.
    package var hasStore = false

    package init() {}

    package init(isCurrent: Bool, behind: Int, hasStore: Bool) {
        self.isCurrent = isCurrent
        self.behind = behind
        self.hasStore = hasStore
    }
}

/// A device of an account and its delivery, as the server reports it to the others. Times are the
/// server's milliseconds since 1970.
package struct DeviceDelivery: Hashable, Sendable {
    package var device: DeviceID
    /// The name that its owner gave it.
    package var name: String
    package var seenMilliseconds: Int64
    /// By how much its clock was ahead of the server's; nil if it has not reported it.
    package var clockAheadMilliseconds: Int64?
    /// The version of the client library that it last used; nil if it has not reported it.
    package var version: String?
    package var delivery: Delivery

    package init(
        device: DeviceID, name: String, seenMilliseconds: Int64,
        clockAheadMilliseconds: Int64? = nil, version: String? = nil, delivery: Delivery
    ) {
        self.device = device
        self.name = name
        self.seenMilliseconds = seenMilliseconds
        self.clockAheadMilliseconds = clockAheadMilliseconds
        self.version = version
        self.delivery = delivery
    }
}
