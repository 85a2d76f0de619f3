// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation

/// Lets a program that is told to end do so by `exit`, so that what is to be done at its end is done.
@MainActor
public final class EndingSignals {
    private let sources: [any DispatchSourceSignal]

    /// - Returns: What must be held for as long as that is to be so.
    public init() {
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
            source.setEventHandler { exit(128 + number) }
            source.resume()
            return source
        }
    }
}
