// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation

/// Turns an interruption (Ctrl-C) or a termination request (SIGTERM) into a call.
///
/// `@unchecked Sendable`: the sources are made once and only ever cancelled, which is safe on any
/// thread.
package final class Signals: @unchecked Sendable {
    private let sources: [any DispatchSourceSignal]

    /// - Parameter handle: Called each time, on a queue of its own.
    package init(_ numbers: [Int32] = [SIGINT, SIGTERM], handle: @escaping @Sendable () -> Void) {
        let queue = DispatchQueue(label: "ubiquity.signals")
        sources = numbers.map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler(handler: handle)
            source.resume()
            return source
        }
    }

    package func cancel() {
        for source in sources { source.cancel() }
    }
}
