// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Where a receiver finds what cancels its request, which is known only after its beginning.
final class CancelPlace: Sendable {
    private let cancelling = Mutex<(@Sendable () -> Void)?>(nil)

    func set(_ cancel: @escaping @Sendable () -> Void) { cancelling.withLock { $0 = cancel } }

    func cancel() { cancelling.withLock { $0 }?() }
}
