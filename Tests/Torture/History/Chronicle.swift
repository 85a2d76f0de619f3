// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TortureLanguage
import UbiquityCore
import UbiquitySimulation

/// Writes down what happens, in the order in which it was said, and has the checkers read along.
///
/// Shared state, all guarded by one mutex: the journal with its checkers, the file, the tally, and
/// what is known of each process. Many threads say what happened, and what each of them says must be
/// taken in as a whole.
final class Chronicle: Sendable {
    struct State {
        var journal: Journal
        let clock: TrueTime
        let file: FileHandle
        var tally = Tally()
        /// The first of them counts.
        var complaint: String?
        var disks: [Int: DiskReference] = [:]
        /// The deletions of each process that it still sees: absent keys have no mark.
        var deletions: [Int: [Key: Int]] = [:]
    }

    private let state: Mutex<State>
    private let start = Chronicle.now

    /// - Parameters:
    ///   - path: Of the file, a JSON document a line.
    ///   - checkers: Makes those that read along.
    init(path: String, checkers: @Sendable () -> [any Checker]) throws {
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        let clock = TrueTime(now: Self.now)
        state = Mutex(
            State(
                journal: Journal(checkers: checkers(), clock: clock), clock: clock, file: file))
    }

    /// Milliseconds of the clock that all processes of the machine share, and that nobody sets.
    static var now: Int64 { milliseconds(MonotonicTime.now) }

    static func milliseconds(_ nanoseconds: UInt64) -> Int64 { Int64(nanoseconds / 1_000_000) }

    var tally: Tally { state.withLock(\.tally) }

    /// A sentence that says what is wrong; nil if nothing is so far.
    var complaint: String? { state.withLock(\.complaint) }

    func complain(_ sentence: String) {
        with { complain(sentence, in: &$0) }
    }

    func count(_ event: Tally.Event, _ number: Int = 1) {
        state.withLock { $0.tally[event] += number }
    }

    /// For who reads the file.
    func note(_ event: String) { with { write(Line(event: event), &$0) } }

    /// For the checkers.
    func note(_ observation: sending Observation) {
        with { state in note(observation, in: &state) }
    }

    /// Records an app's message.
    func take(_ message: TortureMessage, of process: Int) {
        with { state in
            write(Line(process: process, said: message.abridged), &state)
            if case .refused(let reason) = message {
                complain("process \(process) was refused a write: \(reason)", in: &state)
            }
            for observation in state.observations(message, process) {
                note(observation, in: &state)
            }
        }
    }

    func began(_ process: Int, on disk: DiskReference, name: String) {
        with { state in
            state.disks[process] = disk
            write(Line(process: process, event: "\(name) is started on \(disk)"), &state)
        }
    }

    func ended(_ process: Int, _ how: String) {
        with { state in
            note(.ended(process: process), in: &state)
            state.deletions[process] = nil
            write(Line(process: process, event: how), &state)
        }
    }

    private func note(_ observation: Observation, in state: inout State) {
        state.journal.note(observation)
        guard state.complaint == nil, let violation = state.journal.violation else { return }
        complain("\(violation.complaint) (\(violation.checker))", in: &state)
    }

    private func complain(_ sentence: String, in state: inout State) {
        if state.complaint == nil { state.complaint = sentence }
        write(Line(event: "COMPLAINT: \(sentence)"), &state)
    }

    // MARK: - The file

    private struct Line: Encodable {
        var at: Int64 = 0
        var process: Int?
        var event: String?
        var said: TortureMessage?
    }

    private func with(_ body: (inout State) -> Void) {
        state.withLock { state in
            state.clock.now = Self.now
            body(&state)
        }
    }

    /// Writes a line to the file. Errors are ignored, because they are no reason to stop.
    private func write(_ line: Line, _ state: inout State) {
        var line = line
        line.at = state.clock.now - start
        guard let bytes = try? JSONEncoder().encode(line) else { return }
        try? state.file.write(contentsOf: bytes + Data("\n".utf8))
    }
}

extension TortureMessage {
    /// A notification without the values that it did not tell of.
    fileprivate var abridged: TortureMessage {
        guard case .notified(let reason, let keys, let values) = self else { return self }
        return .notified(
            reason: reason, keys: keys, values: values.filter { keys.contains($0.key) })
    }
}
