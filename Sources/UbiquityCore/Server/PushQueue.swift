// SPDX-License-Identifier: Apache-2.0

/// The pushes that wait to be committed. All that wait go into one group, which is committed with
/// one flush of the disk. The more there are, the larger the groups, up to a maximum of work.
/// Accounts take turns, so that an account's waiting pushes delay another one's by at most a group.
///
/// Each account has one of the lanes, which commit at the same time. A lane commits one group after
/// the other.
package struct PushQueue<Store: Hashable & Sendable, Push: Sendable>: Sendable {
    package struct Waiting: Sendable {
        package var account: UInt64
        package var store: Store
        /// Its share of the queue's limit.
        package var bytes: Int
        /// Whether its store's history may have to be read.
        package var searches: Bool
        package var push: Push

        package init(
            account: UInt64, store: Store, bytes: Int, searches: Bool = false, push: Push
        ) {
            (self.account, self.store, self.bytes) = (account, store, bytes)
            (self.searches, self.push) = (searches, push)
        }
    }

    private struct Lane {
        var waiting = FairQueue<UInt64, Waiting>()
        var isCommitting = false
    }

    package enum Arrival: Hashable, Sendable {
        /// The queue is full, and did not take it.
        case refused
        /// It waits for the group after the one that its lane is committing.
        case waits
        /// It waits, and its lane begins to commit: see ``takeGroup(of:)``.
        case begins(lane: Int)
    }

    private var lanes: [Lane]
    /// The number and bytes of the pushes that wait in all lanes.
    package private(set) var count = 0
    private var bytes = 0
    private let countMax: Int
    private let bytesMax: Int

    /// - Parameters:
    ///   - countMax: The pushes that may wait.
    ///   - bytesMax: The bytes that may wait, except that one push always may.
    package init(lanes: Int, countMax: Int, bytesMax: Int) {
        self.lanes = (0..<max(1, lanes)).map { _ in Lane() }
        (self.countMax, self.bytesMax) = (countMax, bytesMax)
    }

    package mutating func add(_ waiting: Waiting) -> Arrival {
        guard count < countMax, bytes == 0 || bytes + waiting.bytes <= bytesMax else {
            return .refused
        }
        let lane = Int(waiting.account % UInt64(lanes.count))
        lanes[lane].waiting.append(waiting, of: waiting.account)
        (count, bytes) = (count + 1, bytes + waiting.bytes)
        guard !lanes[lane].isCommitting else { return .waits }
        lanes[lane].isCommitting = true
        return .begins(lane: lane)
    }

    /// Takes the pushes that a lane commits next, in the order of their commit.
    package mutating func takeGroup(of lane: Int) -> [Waiting] {
        var rule = GroupRule<Store>()
        let group = lanes[lane].waiting.take(rounds: GroupRule<Store>.pushesPerAccountMax) {
            rule.takes($0.store, bytes: $0.bytes, searches: $0.searches)
        }
        (count, bytes) = (count - group.count, bytes - rule.bytes)
        return group
    }

    /// A lane's group was answered.
    /// - Returns: Whether the lane commits another group.
    package mutating func finish(lane: Int) -> Bool {
        lanes[lane].isCommitting = !lanes[lane].waiting.isEmpty
        return lanes[lane].isCommitting
    }

    /// Removes all pushes that wait for a lane, which cannot commit.
    package mutating func removeAll(of lane: Int) -> [Waiting] {
        let waiting = lanes[lane].waiting.take { _ in true }
        lanes[lane] = Lane()
        count -= waiting.count
        bytes -= waiting.reduce(0) { $0 + $1.bytes }
        return waiting
    }
}

/// The bounds of a group.
private struct GroupRule<Store: Hashable> {
    /// A larger group would not be faster, and would delay its first push.
    private static var countMax: Int { 512 }
    /// The maximum cost of a group's pushes together. A more expensive push is committed alone.
    private static var bytesMax: Int { 8 << 20 }
    /// For one account: even a small push may require reading a whole store.
    static var pushesPerAccountMax: Int { 16 }
    /// The most histories that a group reads for what must not be kept, each once. That takes
    /// milliseconds.
    private static var searchesMax: Int { 4 }

    private var count = 0
    private(set) var bytes = 0
    private var searched: Set<Store> = []

    /// - Returns: Whether the push belongs to the group.
    mutating func takes(_ store: Store, bytes: Int, searches: Bool) -> Bool {
        let fits =
            count < Self.countMax && self.bytes + bytes <= Self.bytesMax
            && (!searches || searched.contains(store) || searched.count < Self.searchesMax)
        guard count == 0 || fits else { return false }
        (count, self.bytes) = (count + 1, self.bytes + bytes)
        if searches { searched.insert(store) }
        return true
    }
}
