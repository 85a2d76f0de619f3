// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging

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
