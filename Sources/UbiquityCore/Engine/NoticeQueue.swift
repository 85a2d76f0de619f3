// SPDX-License-Identifier: Apache-2.0

/// The notices waiting to be posted to the app: one for each reason, in order of arrival. The next
/// is posted only after the app's observers have returned from the last.
///
/// An app may answer the notice of a refused write with the same write, without end. So refusals
/// are rate-limited: the first few are posted at once, and after that one every five seconds, with
/// all keys refused meanwhile. Notices for other reasons overtake those that wait.
package struct NoticeQueue: Hashable, Sendable {
    /// The rate of refusal notices: the first ones at once, then one every five seconds.
    package static let refusals = Allowance(burst: 8, perSecond: 0.2)
    /// The gap between two refusal notices, so that the refused writes of a loop are posted
    /// together.
    package static let refusalGapMilliseconds: Int64 = 100
    /// The most keys in one notice of writes refused at once: an app can invent names without end
    /// while a notice waits.
    package static let refusedKeysMax = 4_096

    private var waiting: [Notice] = []
    private var isPosting = false
    private var bucket: TokenBucket
    private var nextRefusalAt: Int64?

    /// - Parameter now: Milliseconds of any monotonic clock.
    package init(now: Int64) { bucket = TokenBucket(Self.refusals, now: now) }

    /// Whether the app has been told everything.
    package var isEmpty: Bool { waiting.isEmpty && !isPosting }

    package mutating func post(_ notice: Notice) {
        guard let index = waiting.firstIndex(where: { $0.reason == notice.reason }) else {
            return waiting.append(notice)
        }
        waiting[index].keys.formUnion(notice.keys)
    }

    /// Posts writes that were refused at once. Keys that do not fit into one notice are left out,
    /// because their values have not changed.
    package mutating func postRefused(_ keys: Set<Key>) {
        let waitingCount = waiting.first { $0.reason == .quotaViolation }?.keys.count ?? 0
        let room = max(0, Self.refusedKeysMax - waitingCount)
        if keys.count <= room { return post(Notice(.quotaViolation, keys)) }
        post(Notice(.quotaViolation, Set(keys.inOrder().prefix(room))))
    }

    /// The next notice to post; nil if there is none, or none before ``wake``. Must be followed by
    /// ``posted()``.
    package mutating func next(at now: Int64) -> Notice? {
        guard !isPosting, let index = waiting.indices.first(where: { isDue($0, at: now) }) else {
            return nil
        }
        isPosting = true
        let notice = waiting.remove(at: index)
        if notice.reason == .quotaViolation { nextRefusalAt = now + Self.refusalGapMilliseconds }
        return notice
    }

    /// The keys that the app has changed itself, for a caller that tells it at once; nil if there are none.
    package mutating func takeOwnWrites() -> Set<Key>? {
        guard let index = waiting.firstIndex(where: { $0.reason == .ownWrite }) else { return nil }
        return waiting.remove(at: index).keys
    }

    /// Call when the app's observers have returned.
    package mutating func posted() { isPosting = false }

    /// When time alone makes a notice due; nil means never.
    package var wake: Int64? { waiting.isEmpty || isPosting ? nil : nextRefusalAt }

    /// Whether a notice is due. Takes a token for a refusal.
    private mutating func isDue(_ index: Int, at now: Int64) -> Bool {
        if waiting[index].reason != .quotaViolation { return true }
        if let nextRefusalAt, now < nextRefusalAt { return false }
        nextRefusalAt = bucket.take(now: now).map { now + $0 }
        return nextRefusalAt == nil
    }
}
