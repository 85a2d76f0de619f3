// SPDX-License-Identifier: Apache-2.0

/// Whether pieces that came one after the other end as an archive does: a transfer through a proxy
/// may be cut off without a word.
package struct ArchiveEnd: Sendable {
    /// How much there was.
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
