// SPDX-License-Identifier: Apache-2.0

/// A deliberate fault.
package enum Fault: String, CaseIterable, Sendable {
    static let rare: [Fault] = [.commitRefused, .serverClockWeeks, .flood]

    // The network
    case requestLost, answerLost, duplicate, slowAnswer, cut, halfOpen, partition
    // Clocks
    case clockJump, drift, serverClockJump
    // Devices
    case processKill, processStop, machineCrash, diskFull, diskUnreadable, saveUncertain
    case diskRestore, clone, snapshot, accountUnreadable
    // The server
    case serverCrash, serverRestore, compactTombstones, serverSlow, serverBusy, overflow
    case limitsChange, unauthorized, commitRefused, serverClockWeeks, flood
    // People
    case signOut, accountSwitch, wipe
}

/// From a device to the server, or back.
package enum Direction: Sendable { case there, back }

/// The permanent qualities of a line.
package struct LineQuality: Hashable, Sendable {
    /// A proxy holds back an answer's data until it has ended, so a stream brings nothing.
    package var isBuffering = false
    /// Nil means unlimited.
    package var bytesPerSecond: Int?

    package init(isBuffering: Bool = false, bytesPerSecond: Int? = nil) {
        self.isBuffering = isBuffering
        self.bytesPerSecond = bytesPerSecond
    }

    /// The time to transfer this many bytes.
    func milliseconds(for bytes: Int) -> Int64 {
        bytesPerSecond.map { Int64(bytes) * 1_000 / Int64($0) } ?? 0
    }
}
