// SPDX-License-Identifier: Apache-2.0

import Foundation
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

/// A server's log for programs: one JSON object per line on the standard error.
struct JSONLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    private let write: @Sendable (TerminalText) -> Void

    init(write: @escaping @Sendable (TerminalText) -> Void = Output.note) { self.write = write }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        write(TerminalText(Self.line(event.level, "\(event.message)", all, at: Date())))
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    static func line(
        _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata, at date: Date
    ) -> String {
        let milliseconds = Int64((date.timeIntervalSince1970 * 1_000).rounded(.down))
        return JSON.object([
            ("time", .string(Phrase.isoTime(milliseconds))), ("level", .string(level.rawValue)),
            ("message", .string(message)), ("metadata", JSON(metadata)),
        ]).text
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

/// The formats of a server's log.
enum LogFormat: String, CaseIterable {
    case text, json
}

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
