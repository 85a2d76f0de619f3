// SPDX-License-Identifier: Apache-2.0

/// Keeps a node's own listeners of a store up to date while other nodes write to it too.
///
/// A node knows its own commits, and hears of others by hints, which may be lost, late, doubled or
/// out of order. A commit of its own is published as it is only if it follows what the listeners
/// have. Otherwise, and for a hint, the node reads what is new since then, so that nobody misses a
/// revision. It also looks up the position every few seconds, since hints may be lost.
///
/// A feed is of one history of the database. When that goes on in another one, after a restart, a
/// failover or a restore, all listeners end and resume from their own cursors: what a device was
/// answered may be gone, even from a store whose position tells nothing of it.
///
/// Feeds begin with the first listener and end with the last one. Each listener is known before it
/// reads the store, and receives everything that is published from then on.
package struct StoreFeed: Hashable, Sendable {
    /// The next step.
    package enum Step: Hashable, Sendable {
        case nothing
        /// To publish the commit as it is.
        case publish
        /// To read the changes since a position, to publish them, and to call ``finish(at:)``.
        case read(since: Position)
        /// To end all listeners, which then resume from their own cursors.
        case restart
    }

    /// The position up to which everything was published; nil until a listener has read the store.
    package private(set) var published: Position?
    /// The position of the first listener.
    private var first: Position?
    private var isReading = false
    /// The positions heard of that may not be published yet.
    private var heard = Heard.nothing

    private enum Heard: Hashable, Sendable {
        case nothing
        /// The greatest position, all in one epoch.
        case position(Position)
        /// Positions, none of which is known to be the newest.
        case several
    }

    package init() {}

    /// A listener has read the store as of this position.
    package mutating func begin(at position: Position) -> Step {
        guard let first else {
            (first, published) = (position, position)
            return catchUp()
        }
        // It has missed what is between the two, or the store is an older copy of itself.
        if position.revision < first.revision { return .restart }
        return hear(of: position)
    }

    /// This node has committed a push that changes something. Call in the order of its commits.
    package mutating func commit(_ push: CommittedPush) -> Step {
        guard !isReading, push.previous == published else { return hear(of: push.position) }
        published = push.position
        return .publish
    }

    /// A hint says that the store has reached this position.
    package mutating func hear(of position: Position) -> Step {
        switch heard {
        case .nothing: heard = .position(position)
        case .position(let other) where other.epoch == position.epoch:
            if position.revision > other.revision { heard = .position(position) }
        case .position, .several: heard = .several
        }
        return isReading ? .nothing : catchUp()
    }

    /// The changes since the requested position were read and published.
    /// - Parameter position: The store's position as read; nil if the changes could not be read, or
    ///   the store has another history.
    package mutating func finish(at position: Position?) -> Step {
        isReading = false
        guard let position else { return .restart }
        published = position
        return catchUp()
    }

    private mutating func catchUp() -> Step {
        guard let published, heard != .nothing else { return .nothing }
        if case .position(let position) = heard, position.epoch == published.epoch,
            position.revision <= published.revision
        {
            heard = .nothing
            return .nothing
        }
        return read(since: published)
    }

    private mutating func read(since position: Position) -> Step {
        (isReading, heard) = (true, .nothing)
        return .read(since: position)
    }
}
