// SPDX-License-Identifier: Apache-2.0

package import Logging
internal import Synchronization

/// A log that a test reads.
package final class LogRecorder: Sendable {
    package struct Line: Equatable, Sendable {
        package var level: Logger.Level
        package var text: String

        package init(level: Logger.Level, text: String) {
            self.level = level
            self.text = text
        }
    }

    private let recorded = Mutex<[Line]>([])

    package init() {}

    package var lines: [Line] { recorded.withLock(\.self) }
    package var logger: Logger { Logger(label: "test") { _ in Handler(recorder: self) } }

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
