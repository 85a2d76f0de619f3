// SPDX-License-Identifier: Apache-2.0

/// Checks whether consecutive pieces end like an archive: a transfer through a proxy may be cut off
/// silently.
package struct ArchiveEnd: Sendable {
    /// The total size so far.
    package private(set) var bytes = 0
    private var zeros = 0

    package init() {}

    package mutating func take(_ piece: [UInt8]) {
        let last = piece.reversed().prefix { $0 == 0 }.count
        zeros = last == piece.count ? zeros + last : last
        bytes += piece.count
    }

    package var isComplete: Bool {
        bytes > 0 && bytes.isMultiple(of: TarHeader.blockBytes)
            && zeros >= 2 * TarHeader.blockBytes
    }
}
