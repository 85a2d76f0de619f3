// SPDX-License-Identifier: Apache-2.0

#if !os(Linux) && !os(Android) && !canImport(Darwin)

internal import Dispatch

/// Polls once a second, because this system has no notifications.
///
/// Unchecked: libdispatch sources are thread-safe, which their Swift types do not declare yet.
struct FileWatch: @unchecked Sendable {
    private let source: any DispatchSourceProtocol

    init(
        folder: String, file: String, queue: DispatchQueue,
        handler: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        source = PollingTimer.start(on: queue, handler)
    }

    func cancel() { source.cancel() }
}

#endif
