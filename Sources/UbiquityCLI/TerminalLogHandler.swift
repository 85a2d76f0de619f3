// SPDX-License-Identifier: Apache-2.0

import Logging
import UbiquityCore

/// A server's log for people: lines on the standard error, safe to show on a terminal.
struct TerminalLogHandler: LogHandler {
    private var lines: any LogHandler

    /// - Parameter lines: Writes the lines.
    init(_ lines: any LogHandler) { self.lines = lines }

    var metadata: Logger.Metadata {
        get { lines.metadata }
        set { lines.metadata = newValue.mapValues(\.visible) }
    }

    var logLevel: Logger.Level {
        get { lines.logLevel }
        set { lines.logLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { lines[metadataKey: key] }
        set { lines[metadataKey: key] = newValue?.visible }
    }

    func log(event: LogEvent) {
        var event = event
        event.message = "\(event.message.description.visible())"
        event.metadata = event.metadata?.mapValues(\.visible)
        if let error = event.error {
            event.error = nil
            event.metadata = (event.metadata ?? [:]).merging(
                ["error": "\("\(error)".visible())"]
            ) { own, _ in own }
        }
        lines.log(event: event)
    }
}

extension Logger.MetadataValue {
    fileprivate var visible: Self {
        switch self {
        case .string(let text): .string(text.visible())
        case .stringConvertible(let value): .string("\(value)".visible())
        case .array(let values): .array(values.map(\.visible))
        case .dictionary(let fields): .dictionary(fields.mapValues(\.visible))
        }
    }
}
