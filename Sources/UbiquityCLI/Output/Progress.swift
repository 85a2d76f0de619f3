// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Shows the progress of long work: a line on the terminal that appears after half a second and
/// disappears at the end. Prints nothing if the standard error is not a terminal.
enum Progress {
    private static let frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

    static func showing<Result>(
        _ what: String, _ body: () async throws -> Result
    ) async rethrows -> Result {
        guard Output.isErrorTerminal else { return try await body() }
        let animation = Task.detached { await animate(what) }
        do {
            let result = try await body()
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

    @concurrent private static func animate(_ what: String) async {
        guard (try? await Task.sleep(for: .milliseconds(500))) != nil else { return }
        var frame = 0
        repeat {
            Output.noteInPlace("\r\(frames[frame % frames.count]) \(what)")
            frame += 1
        } while (try? await Task.sleep(for: .milliseconds(100))) != nil
        Output.noteInPlace("\r\u{1B}[K")
    }
}
