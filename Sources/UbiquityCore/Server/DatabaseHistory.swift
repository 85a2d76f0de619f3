// SPDX-License-Identifier: Apache-2.0

/// The name of the history of a database that several servers share.
package struct DatabaseHistory: Hashable, Sendable {
    /// A database server that takes writes, since its start.
    package struct Primary: Hashable, Sendable {
        /// Names the database system: the same for a primary and its standbys.
        package var system: UInt64
        /// Grows whenever a standby becomes the primary.
        package var timeline: UInt32
        /// Names the start of the server.
        package var start: UInt64

        package init(system: UInt64, timeline: UInt32, start: UInt64) {
            (self.system, self.timeline, self.start) = (system, timeline, start)
        }
    }

    /// Nil if the engine does not say.
    package var primary: Primary?
    /// Names all of it: the primary, the database there, and the number that a restore renews.
    package var name: UInt64

    package init(primary: Primary? = nil, name: UInt64) {
        (self.primary, self.name) = (primary, name)
    }
}

/// Epochs that name the timeline in which they began, so that a node which knows only a replaced
/// primary is told of its successor by the devices' cursors. From the highest bit: 12 bits of
/// timeline, 20 of the history's name, and a tag of 32, which only who knows the database's secret
/// can make. Without it, a device could invent a successor and stop all nodes.
extension Position {
    /// Greater timelines are named like this one.
    private static let timelineMax: UInt32 = 0xFFF

    /// The epoch of a store in a history; nil if the history has no timeline.
    /// - Parameter tag: The keyed hash of a number and the store's name.
    package static func epoch(
        in history: DatabaseHistory, tag: (UInt64) -> UInt32
    ) -> UInt64? {
        guard let primary = history.primary else { return nil }
        let timeline = UInt64(min(primary.timeline, timelineMax))
        let claim = timeline << 20 | UInt64(tag(history.name) & 0xF_FFFF)
        return claim << 32 | UInt64(tag(claim))
    }

    /// The timeline that the epoch names; nil if no node of this database has made it for the store.
    package func timeline(tag: (UInt64) -> UInt32) -> UInt32? {
        let claim = epoch >> 32
        guard tag(claim) == UInt32(truncatingIfNeeded: epoch) else { return nil }
        return UInt32(claim >> 20)
    }
}
