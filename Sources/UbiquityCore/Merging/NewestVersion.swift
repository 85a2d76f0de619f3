// SPDX-License-Identifier: Apache-2.0

/// A key's newest version, and the one before it.
package struct NewestVersion: Hashable, Sendable {
    package var now: KeyVersion
    /// Nil if it is not known.
    package var before: KeyVersion?

    private static let versionsMax = 1_000

    /// - Parameters:
    ///   - records: The key's versions in the newest part of the store's history.
    ///   - isWhole: Whether that part is the whole history. Otherwise, nothing is concluded from the
    ///     parts of a key with a policy, some of which may be missing.
    ///   - local: What this device knows of the key.
    package init?(
        of key: Key, from records: [RecordVersion], isWhole: Bool, local: [KeyVersion]
    ) {
        let isKnown = isWhole || !records.contains { $0.record.key.isPart }
        var all = KeyHistory(of: key, from: isKnown ? records : [])
            .versions(newest: Self.versionsMax).adding(own: local, newest: Self.versionsMax)
            .filter { $0.isHeld || $0.outcome == .gap }
        if !all.contains(where: { $0.outcome == .current }) {
            all += local.filter { $0.outcome == .current }
        }
        guard let now = all.first else { return nil }
        self.now = now
        before = all.dropFirst().first.flatMap { $0.outcome == .gap ? nil : $0 }
    }
}
