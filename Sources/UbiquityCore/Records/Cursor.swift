// SPDX-License-Identifier: Apache-2.0

/// A place in a store's order of arrival, to resume from. To a device it is an opaque text.
package struct Cursor: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    /// Nil unless the text is 1 to 128 visible ASCII characters.
    package init?(_ text: String) {
        guard (1...128).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        self.text = text
    }

    package var description: String { text }
}

/// What a cursor means to the server: a revision, and the epoch in which it was committed.
///
/// The revision alone would not do. A server restored from an older copy counts the same numbers
/// again for other writes, and a device from before would miss them. So each run of the server is
/// an epoch with a name of its own, drawn by chance, and a cursor holds only in a store whose
/// revision of that number comes from that epoch.
package struct Position: Hashable, Sendable {
    package var epoch: UInt64
    package var revision: Int64

    package init(epoch: UInt64, revision: Int64) {
        self.epoch = epoch
        self.revision = revision
    }

    /// The epoch of one store in a run of the server, so that no cursor of one store holds in another:
    /// the FNV-1a hash of the store's name, begun with the run's number.
    package static func epoch(ofRun run: UInt64, store name: String) -> UInt64 {
        let hash = name.utf8.reduce(run ^ 0xCBF2_9CE4_8422_2325) { hash, byte in
            (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        return max(1, hash)
    }

    /// Nil for a cursor that no server of this kind gave.
    package init?(_ cursor: Cursor) {
        let parts = cursor.text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let epoch = DeviceID(String(parts[0])),
            let revision = Int64(parts[1]), revision >= 0
        else { return nil }
        self.init(epoch: epoch.rawValue, revision: revision)
    }

    package var cursor: Cursor {
        Cursor("\(DeviceID.hexadecimal(epoch))-\(revision)")!
    }
}
