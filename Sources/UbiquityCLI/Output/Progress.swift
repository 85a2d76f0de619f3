// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Shows the progress of long work: a line on the terminal that appears after half a second and
/// disappears at the end. Work within other work counts towards that one's line. Prints nothing if
/// the standard error is not a terminal.
enum Progress {
    @TaskLocal private static var line: ProgressLine?

    /// Whether a line may be on the terminal, which other text must overwrite.
    static var isShown: Bool { line != nil }

    /// Sets the step that the line shows, from any thread.
    typealias Note = @Sendable (ProgressStep) -> Void

    static func showing<Result>(
        _ what: String, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await showing { note in
            note(ProgressStep(what))
            return try await body()
        }
    }

    /// The same for work that says how far it is.
    static func showing<Result>(
        _ body: (_ note: @escaping Note) async throws -> Result
    ) async rethrows -> Result {
        guard Output.isErrorTerminal else { return try await body { _ in } }
        if let line { return try await body { line.add($0) } }
        let line = ProgressLine()
        let animation = Task.detached { await animate(line) }
        do {
            let result = try await $line.withValue(line) {
                try await body { line.set($0, at: .now) }
            }
            await end(animation)
            return result
        } catch {
            await end(animation)
            throw error
        }
    }

    private static func end(_ animation: Task<Void, Never>) async {
        animation.cancel()
        await animation.value
    }

    @concurrent private static func animate(_ line: ProgressLine) async {
        guard (try? await Task.sleep(for: .milliseconds(500))) != nil else { return }
        let frames = Array(Output.isUnicode ? "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" : "|/-\\")
        var frame = 0
        repeat {
            let text = line.text(at: .now).prefix(max(0, (Output.errorColumns ?? 80) - 3))
            Output.noteInPlace("\r\(frames[frame % frames.count]) \(text)\u{1B}[K")
            frame += 1
        } while (try? await Task.sleep(for: .milliseconds(100))) != nil
        Output.noteInPlace("\r\u{1B}[K")
    }
}

/// A step of long work, and how far it is.
struct ProgressStep: Hashable, Sendable {
    enum Unit: String, Sendable { case bytes, rows, keys, stores }

    /// For example "Copying".
    var what: String
    /// Nil if that is not known.
    var done: Int?
    /// Nil if that is not known.
    var all: Int?
    var unit: Unit

    init(_ what: String, _ done: Int? = nil, of all: Int? = nil, _ unit: Unit = .bytes) {
        (self.what, self.done, self.all, self.unit) = (what, done, all, unit)
    }

    /// For example "Copying: 45 %, 12 of 26 MB, 3 MB/s, about 5 s left".
    /// - Parameter seconds: Since the step began. In the first one there is no rate, and where
    ///   nothing is done yet, none later either.
    func text(after seconds: Double) -> String {
        guard let done else {
            return seconds < 1 ? what : "\(what): \(Phrase.span(seconds))"
        }
        var parts: [String] = []
        if let all, all > 0 {
            parts.append("\(Int(100 * Double(min(done, all)) / Double(all))) %")
            parts.append("\(amount(done)) of \(amount(all))")
        } else {
            parts.append(amount(done))
        }
        if seconds >= 1, done == 0 { parts.append(Phrase.span(seconds)) }
        if seconds >= 1, done > 0 {
            let rate = Double(done) / seconds
            parts.append("\(amount(Int(rate)))/s")
            if let all, all > done {
                parts.append("about \(Phrase.span(Double(all - done) / rate)) left")
            }
        }
        return "\(what): \(parts.joined(separator: ", "))"
    }

    private func amount(_ count: Int) -> String {
        unit == .bytes ? Phrase.size(count) : "\(Phrase.grouped(count)) \(unit.rawValue)"
    }
}

/// The step of a line that work on any thread sets and the animation shows.
///
/// State: the step, what work within it has done of it, and when it began, guarded by their lock.
final class ProgressLine: Sendable {
    private let state = Mutex((step: ProgressStep(""), part: 0, start: ContinuousClock.now))

    func set(_ step: ProgressStep, at now: ContinuousClock.Instant) {
        state.withLock { state in
            if state.step.what != step.what { state.start = now }
            (state.step, state.part) = (step, 0)
        }
    }

    /// Sets the step of work within this one.
    func add(_ step: ProgressStep) {
        state.withLock { state in
            if let done = step.done, step.unit == state.step.unit { state.part = done }
        }
    }

    func text(at now: ContinuousClock.Instant) -> String {
        var (step, part, start) = state.withLock(\.self)
        step.done = step.done.map { min($0 + part, max($0, step.all ?? .max)) }
        return step.text(after: (now - start) / .seconds(1))
    }
}
