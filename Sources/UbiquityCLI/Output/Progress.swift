// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Shows the progress of long work: a line on the terminal that appears after half a second and
/// disappears at the end. Prints nothing if the standard error is not a terminal.
enum Progress {
    private static let frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

    static func showing<Result>(
        _ what: String, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await showing { note in
            note(what)
            return try await body()
        }
    }

    /// The same for work that says how far it is.
    /// - Parameter body: Is given a function that changes the line.
    static func showing<Result>(
        _ body: (_ note: @escaping @Sendable (String) -> Void) async throws -> Result
    ) async rethrows -> Result {
        guard Output.isErrorTerminal else { return try await body { _ in } }
        let line = ProgressLine()
        let animation = Task.detached { await animate(line) }
        do {
            let result = try await body(line.set)
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
        var frame = 0
        repeat {
            Output.noteInPlace("\r\(frames[frame % frames.count]) \(line.text)\u{1B}[K")
            frame += 1
        } while (try? await Task.sleep(for: .milliseconds(100))) != nil
        Output.noteInPlace("\r\u{1B}[K")
    }
}

/// The text of a line that work on one thread sets and the animation shows.
///
/// State: the text, guarded by its lock.
private final class ProgressLine: Sendable {
    private let state = Mutex("")

    var text: String { state.withLock(\.self) }
    func set(_ text: String) { state.withLock { $0 = text } }
}
