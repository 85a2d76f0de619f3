// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// Runs each body on a thread of its own, and waits for all.
/// - Throws: The first error of any.
func atOnce(_ bodies: [@Sendable () throws -> Void]) throws {
    let failures = Mutex<[any Error]>([])
    let group = DispatchGroup()
    for body in bodies {
        group.enter()
        Thread.detachNewThread {
            do { try body() } catch { failures.withLock { $0.append(error) } }
            group.leave()
        }
    }
    group.wait()
    if let failure = failures.withLock(\.first) { throw failure }
}
