// SPDX-License-Identifier: Apache-2.0

#if !os(Linux) && !os(Android) && !canImport(Darwin)

internal import Dispatch

/// Calls once a second, whether anything changed or not: on this system nobody tells, and the
/// handler's own look costs less than one at the files' dates would.
///
/// Unchecked: libdispatch guards its sources itself, which its Swift types do not say yet.
struct FileWatch: @unchecked Sendable {
    private let source: any DispatchSourceTimer

    init(
        folder: String, prefix: String, queue: DispatchQueue,
        handler: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        source = DispatchSource.makeTimerSource(queue: queue)
        source.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(200))
        source.setEventHandler(handler: handler)
        source.resume()
    }

    func cancel() { source.cancel() }
}

#endif
