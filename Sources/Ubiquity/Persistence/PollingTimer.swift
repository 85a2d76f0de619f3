// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

internal import Dispatch

/// Calls the handler once a second where there are no notifications, whether anything changed or
/// not: the handler's own check costs less than comparing file dates.
enum PollingTimer {
    static func start(
        on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
    ) -> any DispatchSourceProtocol {
        let source = DispatchSource.makeTimerSource(queue: queue)
        source.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(200))
        source.setEventHandler(handler: handler)
        source.resume()
        return source
    }
}

#endif
