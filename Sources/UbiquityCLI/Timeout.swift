// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// - Throws: The body's error, or ``UbiquityError/Code/unreachable`` when the time is up; the body
///   is cancelled then.
func withTimeout(
    seconds: Double, _ body: @escaping @Sendable () async throws -> Void
) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: .seconds(seconds))
            throw UbiquityError(
                .unreachable, "the server did not answer within \(seconds.formatted()) s")
        }
        defer { group.cancelAll() }
        try await group.next()
    }
}
