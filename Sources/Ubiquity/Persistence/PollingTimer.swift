// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

internal import Dispatch

/// Calls once a second, whether anything changed or not, where nobody tells: the handler's own look
/// costs less than one at the files' dates would.
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
