// SPDX-License-Identifier: Apache-2.0

/// The notices that wait to be posted to the app: one for a reason, in the order in which the reasons
/// came, and never a second one while the app's observers are still busy with the first.
///
/// An app may answer the notice of a refused write with the same write, without end. So refusals are
/// paced: a few are told at once, and from then on one every five seconds, with all keys that were
/// refused meanwhile. Other reasons pass those that wait for their time.
package struct NoticeQueue: Hashable, Sendable {
    /// How often refusals are told: the first ones at once, then one every five seconds.
    package static let refusals = Allowance(burst: 8, perSecond: 0.2)
    /// Between two notices of refusals, so that a loop's refused writes are told together.
    package static let refusalGapMilliseconds: Int64 = 100
    /// The most keys that one notice has of writes that were refused at once: an app can invent
    /// names without end while a notice waits.
    package static let refusedKeysMax = 4_096

    private var waiting: [Notice] = []
    private var isPosting = false
    private var bucket: TokenBucket
    private var nextRefusalAt: Int64?

    /// - Parameter now: Milliseconds of any clock that does not go back.
    package init(now: Int64) { bucket = TokenBucket(Self.refusals, now: now) }

    /// Whether the app knows of everything.
    package var isEmpty: Bool { waiting.isEmpty && !isPosting }

    package mutating func post(_ notice: Notice) {
        guard let index = waiting.firstIndex(where: { $0.reason == notice.reason }) else {
            return waiting.append(notice)
        }
        waiting[index].keys.formUnion(notice.keys)
    }

    /// Posts writes that were refused at once: the values are as they were, so that what does not fit
    /// into one notice is left out.
    package mutating func postRefused(_ keys: Set<Key>) {
        let waitingCount = waiting.first { $0.reason == .quotaViolation }?.keys.count ?? 0
        let room = max(0, Self.refusedKeysMax - waitingCount)
        if keys.count <= room { return post(Notice(.quotaViolation, keys)) }
        post(Notice(.quotaViolation, Set(keys.sorted().prefix(room))))
    }

    /// The next notice to post; nil: there is none, or not before ``wake``. ``posted()`` must follow.
    package mutating func next(at now: Int64) -> Notice? {
        guard !isPosting, let index = waiting.indices.first(where: { isDue($0, at: now) }) else {
            return nil
        }
        isPosting = true
        let notice = waiting.remove(at: index)
        if notice.reason == .quotaViolation { nextRefusalAt = now + Self.refusalGapMilliseconds }
        return notice
    }

    /// The app's observers have returned.
    package mutating func posted() { isPosting = false }

    /// When time alone makes a notice due; nil: never.
    package var wake: Int64? { waiting.isEmpty || isPosting ? nil : nextRefusalAt }

    /// Takes a token for a refusal.
    private mutating func isDue(_ index: Int, at now: Int64) -> Bool {
        if waiting[index].reason != .quotaViolation { return true }
        if let nextRefusalAt, now < nextRefusalAt { return false }
        nextRefusalAt = bucket.take(now: now).map { now + $0 }
        return nextRefusalAt == nil
    }
}
