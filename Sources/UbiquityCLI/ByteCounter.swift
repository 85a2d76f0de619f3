// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Counts what comes in pieces, from any thread.
///
/// State: one number, which the hardware guards.
final class ByteCounter: Sendable {
    private let bytes = Atomic(0)

    var count: Int { bytes.load(ordering: .relaxed) }

    func add(_ count: Int) { bytes.add(count, ordering: .relaxed) }
}
