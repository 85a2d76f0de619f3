// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Calls a closure for each notification until it is released.
///
/// `@unchecked Sendable`: the token is only ever returned to the notification centre.
final class NotificationObserver: @unchecked Sendable {
    private let token: any NSObjectProtocol

    /// - Parameter name: Observed for all objects, because an app may have several for one domain.
    init(_ name: Notification.Name, _ body: @escaping @Sendable () -> Void) {
        token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) {
            _ in body()
        }
    }

    deinit { NotificationCenter.default.removeObserver(token) }
}
