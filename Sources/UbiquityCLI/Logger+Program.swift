// SPDX-License-Identifier: Apache-2.0

import Logging

extension Logger {
    /// Logs the library's errors like all of this program's: one sentence on the standard error.
    static let program: Logger = {
        var logger = Logger(label: "ubiquity") { _ in SentenceLogHandler() }
        logger.logLevel = .error
        return logger
    }()
}

private struct SentenceLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.error

    func log(event: LogEvent) { Output.note("ubiquity: \(event.message)") }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
}
