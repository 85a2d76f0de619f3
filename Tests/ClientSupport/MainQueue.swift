// SPDX-License-Identifier: Apache-2.0

internal import Dispatch

/// Whether code runs on the main queue. Not the same as the main thread: in a program with an
/// asynchronous main, on Linux, the main queue has no thread of its own.
package enum MainQueue {
    package static var isCurrent: Bool {
        _ = isMarked
        return DispatchQueue.getSpecific(key: mark) == true
    }

    private static let mark = DispatchSpecificKey<Bool>()
    private static let isMarked: Void = DispatchQueue.main.setSpecific(key: mark, value: true)
}
