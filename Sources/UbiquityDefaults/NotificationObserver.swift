// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Is called for a notification until it is gone.
///
/// `@unchecked Sendable`: the token is only ever handed back to the centre.
final class NotificationObserver: @unchecked Sendable {
    private let token: any NSObjectProtocol

    /// - Parameter name: Whosever it is: an app may have several objects for one domain.
    init(_ name: Notification.Name, _ body: @escaping @Sendable () -> Void) {
        token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) {
            _ in body()
        }
    }

    deinit { NotificationCenter.default.removeObserver(token) }
}
