// SPDX-License-Identifier: Apache-2.0

/// The environment of the virtual parts: time, chance and current faults. The simulator has one,
/// and tests of apps have another.
///
/// Used by one thread at a time.
package protocol VirtualWorld: AnyObject {
    /// The true time: milliseconds since 1970.
    var now: Int64 { get }
    var chance: Chance { get }
    var server: VirtualServer { get }

    /// Schedules an event. Events of the same time happen in the order of scheduling.
    func at(_ time: Int64, _ body: @escaping () -> Void)

    /// Streams of all processes are numbered together.
    func newStreamID() -> Int

    /// The latency of one direction between a device and the server, in milliseconds.
    func delay(of device: Int, _ direction: Direction) -> Int64

    /// The permanent qualities of a device's line.
    func quality(of device: Int) -> LineQuality

    /// Whether a fault strikes a device's request or answer that is being sent.
    func strikes(_ fault: Fault, device: Int) -> Bool

    /// Records an observation.
    func note(_ observation: @autoclosure () -> Observation)
}

extension VirtualWorld {
    package func after(_ milliseconds: Int64, _ body: @escaping () -> Void) {
        at(now + milliseconds, body)
    }
}
