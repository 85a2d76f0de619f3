// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import ProcessHarness
import Synchronization
import TortureLanguage

/// An app under torture, in a process of its own.
///
/// Shared state, guarded by one mutex: a thread of its own reads what the app says, as its driver
/// goes on.
final class AppProcess: Sendable {
    private struct State {
        var isOpen = false
        var hasEnded = false
        /// Commands that were not answered yet.
        var unanswered = 0
        /// The app's last answer to ``TortureCommand/show``.
        var view: TortureView?
        var viewsSeen = 0
        /// The result of each save; nil for a success.
        var saves: [String?] = []
        /// The same for the round trips that have ended, by their numbers.
        var roundTrips: [Int: String?] = [:]
    }

    let number: Int
    let name: String
    let device: TortureDevice
    private let child: ChildProcess
    private let input = Pipe()
    private let output = Pipe()
    private let chronicle: Chronicle
    private let state = Mutex(State())

    /// Starts it; it is not ready yet.
    init(
        _ number: Int, name: String, on device: TortureDevice, _ stage: Stage,
        _ chronicle: Chronicle
    ) throws {
        (self.number, self.name, self.device) = (number, name, device)
        self.chronicle = chronicle
        chronicle.began(number, on: device.disk, name: name)
        child = try stage.start(
            ["--torture", "--home", device.home, "--store", TortureDevice.store],
            program: .worker, input: input, output: output, environment: device.environment)
        Thread { [self] in read() }.start()
    }

    var isOpen: Bool { state.withLock(\.isOpen) }
    var isRunning: Bool { child.isRunning && !hasSaidAll }
    private var hasSaidAll: Bool { state.withLock(\.hasEnded) }
    var lastWords: String { child.lastWords }
    var viewsSeen: Int { state.withLock(\.viewsSeen) }
    var saves: [String?] { state.withLock(\.saves) }
    var roundTrips: [Int: String?] { state.withLock(\.roundTrips) }
    var view: TortureView? { state.withLock(\.view) }

    // MARK: - What it is told

    /// The greatest number of unanswered commands.
    private static let unansweredMax = 64

    /// Sends a command, and does not wait. An app that does not come after is left in peace, and so is
    /// one that has ended.
    func send(_ command: TortureCommand) {
        let isBusy = state.withLock { state in
            if state.unanswered >= Self.unansweredMax || state.hasEnded { return true }
            state.unanswered += 1
            return false
        }
        guard !isBusy, let line = try? JSONEncoder().encode(command) else { return }
        try? input.fileHandleForWriting.write(contentsOf: line + Data("\n".utf8))
    }

    /// `kill -9`; returns when all that it said is written down.
    func kill(_ how: String) async throws {
        child.kill()
        try await until("the end of \(name)") { hasSaidAll && !child.isRunning }
        chronicle.ended(number, how)
        child.forget()
    }

    /// As a debugger does.
    func stop(_ isStopped: Bool) { child.signal(isStopped ? SIGSTOP : SIGCONT) }

    /// Closes its store and ends.
    func end() async throws {
        try? input.fileHandleForWriting.close()
        try await until("the end of \(name)") { hasSaidAll && !child.isRunning }
        chronicle.ended(number, "ends")
        child.forget()
    }

    // MARK: - What it says

    private func read() {
        var rest = Data()
        while true {
            let bytes = output.fileHandleForReading.availableData
            if bytes.isEmpty { break }
            rest += bytes
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                take(rest[..<end])
                rest = rest[rest.index(after: end)...]
            }
            rest = Data(rest)
        }
        // A line that a kill cut off is none.
        state.withLock { $0.hasEnded = true }
    }

    private func take(_ line: Data) {
        guard let message = try? JSONDecoder().decode(TortureMessage.self, from: line) else {
            return chronicle.complain("\(name) said: \(String(decoding: line, as: UTF8.self))")
        }
        chronicle.take(message, of: number)
        state.withLock { state in
            switch message {
            case .opened: state.isOpen = true
            case .shows(let view):
                state.view = view
                state.viewsSeen += 1
                state.unanswered -= 1
            case .saved(let failure):
                state.saves.append(failure)
                state.unanswered -= 1
            case .roundTripEnded(let number, let failure):
                state.roundTrips[number] = .some(failure)
            case .reopened, .writing, .merged, .passedOver, .declared, .roundTripBegun:
                state.unanswered -= 1
            case .refused, .notified: break
            }
        }
    }
}
