// SPDX-License-Identifier: Apache-2.0

#if !os(Linux) && !os(Android) && !canImport(Darwin)

internal import Dispatch

/// Looks once a second: on this system nobody tells.
///
/// Unchecked: libdispatch guards its sources itself, which its Swift types do not say yet.
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
