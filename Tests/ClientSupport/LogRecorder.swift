// SPDX-License-Identifier: Apache-2.0

package import Logging
internal import Synchronization

/// A log that a test reads, of all levels.
///
/// Shared state: what was logged, guarded by a mutex.
package final class LogRecorder: Sendable {
    package struct Line: Equatable, Sendable {
        package var level: Logger.Level
        package var text: String

        package init(level: Logger.Level, text: String) {
            self.level = level
            self.text = text
        }
    }

    private let recorded = Mutex<[(line: Line, metadata: Logger.Metadata)]>([])

    package init() {}

    package var lines: [Line] { recorded.withLock { $0.map(\.line) } }

    /// Everything, with the metadata.
    package var text: String {
        recorded.withLock { recorded in
            recorded.map { "\($0.line.level) \($0.line.text) \($0.metadata)" }
                .joined(separator: "\n")
        }
    }

    package var logger: Logger {
        var logger = Logger(label: "test") { _ in Handler(recorder: self) }
        logger.logLevel = .trace
        return logger
    }

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
            let all = metadata.merging(event.metadata ?? [:]) { $1 }
            recorder.recorded.withLock { $0.append((line, all)) }
        }
    }
}
