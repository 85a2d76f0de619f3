// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The state of a run: its time, the events to come, and the last number of each kind.
package final class RunState {
    let clock: TrueTime
    package let start: Int64
    private var eventQueue = EventQueue()
    /// The number of events that have happened under faults.
    var steps = 0
    /// Whether the faults have ended, so that everything must settle.
    package var isPeaceful = false
    package internal(set) var lastWrite = 0
    var lastProcess = 0
    var lastStream = 0
    var knownClocks: [Int: VirtualClock] = [:]
    var knownServerError: Int64?
    /// The keys of the sealed accounts, whose marks their server has.
    var keyrings: [Int: Keyring] = [:]
    /// The times until which a fault strikes everything that a device sends or receives.
    var certain: [Fault: [Int: Int64]] = [:]

    package init(clock: TrueTime) {
        self.clock = clock
        start = clock.now
    }

    func at(_ time: Int64, _ body: @escaping () -> Void) { eventQueue.add(at: time, body) }

    /// Runs the next event.
    /// - Returns: False if there is none before that time.
    func step(before end: Int64 = .max) -> Bool {
        guard let next = eventQueue.nextTime, next <= end, let item = eventQueue.removeNext() else {
            return false
        }
        clock.now = item.time
        item.body()
        return true
    }

    func end() { eventQueue = EventQueue() }
}
