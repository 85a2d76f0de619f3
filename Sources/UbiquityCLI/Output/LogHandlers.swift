// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import UbiquityCore

/// Gives a function each event, with all of its metadata. An error is metadata, too.
struct EventLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    private let write: @Sendable (LogEvent) -> Void

    init(write: @escaping @Sendable (LogEvent) -> Void) { self.write = write }

    func log(event: LogEvent) {
        var event = event
        let error: Logger.Metadata = event.error.map { ["error": "\($0)"] } ?? [:]
        event.error = nil
        event.metadata = error.merging(metadata) { $1 }.merging(event.metadata ?? [:]) { $1 }
        write(event)
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
}

/// The formats of a server's log, which goes to the standard error.
enum LogFormat: String, CaseIterable {
    /// Lines for people.
    case text
    /// One JSON object per line, for programs.
    case json

    /// - Parameter lines: Writes a line for people.
    func handler(lines: any LogHandler) -> EventLogHandler {
        switch self {
        case .text: EventLogHandler { lines.log(event: $0.visible) }
        case .json: EventLogHandler { Output.note(TerminalText($0.json(at: Date()).text)) }
        }
    }
}

extension Logger {
    /// Logs the library's errors like all of this program's: one sentence on the standard error.
    static let program: Logger = {
        var logger = Logger(label: "ubiquity") { _ in
            EventLogHandler { Output.note("ubiquity: \($0.message)") }
        }
        logger.logLevel = .error
        return logger
    }()
}

extension LogEvent {
    /// The same, safe to show on a terminal.
    var visible: LogEvent {
        var event = self
        event.message = "\(message.description.visible())"
        event.metadata = metadata?.mapValues(\.visible)
        return event
    }

    func json(at date: Date) -> JSON {
        [
            "time": .string(Phrase.isoTime(date.milliseconds)), "level": .string(level.rawValue),
            "message": .string("\(message)"), "metadata": JSON(metadata ?? [:]),
        ]
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

extension JSON {
    /// Sorted by name.
    fileprivate init(_ metadata: Logger.Metadata) {
        self = .object(metadata.sorted { $0.key < $1.key }.map { ($0.key, JSON($0.value)) })
    }

    fileprivate init(_ value: Logger.Metadata.Value) {
        switch value {
        case .string(let string): self = .string(string)
        case .stringConvertible(let value): self = .string("\(value)")
        case .array(let values): self = .array(values.map { JSON($0) })
        case .dictionary(let fields): self = JSON(fields)
        }
    }
}
