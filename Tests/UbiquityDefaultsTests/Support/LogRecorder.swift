// SPDX-License-Identifier: Apache-2.0

import Logging
import Synchronization

/// A log that a test reads.
final class LogRecorder: Sendable {
    struct Line: Equatable, Sendable {
        var level: Logger.Level
        var text: String
    }

    private let recorded = Mutex<[Line]>([])

    var lines: [Line] { recorded.withLock(\.self) }
    var logger: Logger { Logger(label: "test") { _ in Handler(recorder: self) } }

    private struct Handler: LogHandler {
        var recorder: LogRecorder
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let line = Line(level: event.level, text: "\(event.message)")
            recorder.recorded.withLock { $0.append(line) }
        }
    }
}
