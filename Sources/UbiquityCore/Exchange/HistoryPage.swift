// SPDX-License-Identifier: Apache-2.0

/// Some versions of a store's entries, those that came last first.
package struct HistoryPage: Hashable, Sendable {
    package var versions: [RecordVersion]
    /// The beginning of the next page, as the server names it; nil if this is the last one.
    package var next: String?
    package var serverMilliseconds: Int64

    package init(versions: [RecordVersion], next: String?, serverMilliseconds: Int64) {
        self.versions = versions
        self.next = next
        self.serverMilliseconds = serverMilliseconds
    }
}

/// Reads a history page by page, within bounds, whatever a server sends.
package struct HistoryReading: Sendable {
    private let key: Key?
    private let max: Int
    package private(set) var versions: [RecordVersion] = []
    private var bytes = 0
    private var hasParts = false

    /// The most versions that are read, and their cost as in a push.
    package static let versionsMax = 100_000
    package static let bytesMax = 256 << 20
    /// The most versions that one request asks for.
    package static let pageMax = 1_000

    /// - Parameters:
    ///   - key: The key whose versions are read; nil for those of all keys.
    ///   - max: How many versions of the key are wanted. If it has parts, all of them are read,
    ///     because each value is made of all parts.
    package init(of key: Key?, newest max: Int) {
        self.key = key
        self.max = max
    }

    /// - Returns: Where the next page begins; nil if this one was the last that is needed.
    /// - Throws: ``HistoryTooLong``.
    package mutating func take(_ page: HistoryPage) throws(HistoryTooLong) -> String? {
        versions += page.versions
        bytes += page.versions.reduce(0) { $0 + $1.record.pushBytes }
        if !hasParts { hasParts = page.versions.contains(where: { $0.record.key.isPart }) }
        // An empty page leads nowhere.
        guard let next = page.next, !page.versions.isEmpty else { return nil }
        if versions.count >= max, key == nil || !hasParts { return nil }
        guard versions.count < Self.versionsMax, bytes < Self.bytesMax else {
            throw HistoryTooLong()
        }
        return next
    }
}

package struct HistoryTooLong: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String {
        "the history has more than \(HistoryReading.versionsMax) versions or "
            + "\(HistoryReading.bytesMax >> 20) MB, which is more than this program reads"
    }
}
