// SPDX-License-Identifier: Apache-2.0

/// What a save meets on a device's disk. Protocol/conformance.md describes each.
enum DiskFailure: String, CaseIterable {
    case full, readOnly, silent
    case closed, gone, replaced
    case late

    /// Whether nothing of the save can be on the disk. Otherwise, the client knows what became of it.
    var isRefusal: Bool { [.full, .readOnly, .silent].contains(self) }
}
