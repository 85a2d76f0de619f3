// SPDX-License-Identifier: Apache-2.0

/// Decides when a device tells the server up to which cursor it has saved the store.
///
/// A cursor is saved when the save that wrote it, with everything up to it, has succeeded. Pushes,
/// streams and polls name it in passing. A request of its own, the *receipt*, is only made for what
/// others wrote: the server knows that a device has its own writes, because it saves them before it
/// sends them.
struct ReceiptRule: Hashable, Sendable {
    /// The pause after a save, so that one receipt covers a burst of changes, in milliseconds.
    static let delayMilliseconds: Int64 = 1_000
    /// The time between two receipts in the long run, in milliseconds.
    static let intervalMilliseconds: Int64 = 60_000
    /// The number of receipts that may be made without that. Somebody may be waiting to see that
    /// this device has a change, and then another one.
    static let burstMax: Int64 = 5

    /// The cursor on disk; nil if there is none, or if it is not of the store that is in memory.
    private(set) var saved: Cursor?
    /// Memory has changes of others that no save has begun to write.
    private var hasNews = false
    /// Counts the downloads of the whole store, whose cursor may be of another history than before.
    private var downloads = 0
    /// When changes of others were saved that have not been reported to the server; nil if all
    /// have.
    private var owedSince: Int64?
    /// When the next receipt may be sent, at the earliest.
    private var notBefore: Int64 = .min

    init(saved: Cursor?) { self.saved = saved }

    /// A save under way that writes the cursor.
    struct Saving: Hashable, Sendable {
        fileprivate var cursor: Cursor?
        fileprivate var hasNews: Bool
        fileprivate var downloads: Int
    }

    /// Memory has taken in changes.
    mutating func received(_ changes: ChangeSet, by device: DeviceID) {
        if changes.isWhole { (saved, downloads) = (nil, downloads + 1) }
        let isNews = changes.isWhole || changes.records.contains { $0.stamp.device != device }
        hasNews = hasNews || isNews
    }

    mutating func beginSave(of cursor: Cursor?) -> Saving {
        defer { hasNews = false }
        return Saving(cursor: cursor, hasNews: hasNews, downloads: downloads)
    }

    mutating func finishSave(_ saving: Saving, at uptime: Int64) {
        guard saving.downloads == downloads else { return }
        saved = saving.cursor
        if saving.hasNews, owedSince == nil { owedSince = uptime }
    }

    mutating func undoSave(_ saving: Saving) { hasNews = hasNews || saving.hasNews }

    /// The server has answered a request that named this cursor as saved.
    mutating func told(_ cursor: Cursor?) {
        if let cursor, cursor == saved { owedSince = nil }
    }

    /// When a receipt is due, by the uptime; nil if none is.
    var dueAt: Int64? {
        guard saved != nil else { return nil }
        return owedSince.map { max($0 + Self.delayMilliseconds, notBefore) }
    }

    /// A receipt is being sent.
    mutating func sending(at uptime: Int64) {
        let earliest = uptime - (Self.burstMax - 1) * Self.intervalMilliseconds
        notBefore = max(notBefore, earliest) + Self.intervalMilliseconds
    }
}
