// SPDX-License-Identifier: Apache-2.0

/// What the virtual parts stand in: time, chance, and what goes wrong at the moment. The simulator has
/// one, and tests of apps have one.
///
/// One thread at a time.
package protocol VirtualWorld: AnyObject {
    /// The true time: milliseconds since 1970.
    var now: Int64 { get }
    var chance: Chance { get }
    var server: VirtualServer { get }

    /// Has something happen at a time; what is planned for one time happens in the order in which it
    /// was planned.
    func at(_ time: Int64, _ body: @escaping () -> Void)

    /// Streams of all processes are counted together.
    func newStreamID() -> Int

    /// How long one way between a device and the server takes, in milliseconds.
    func delay(of device: Int, _ direction: Direction) -> Int64

    /// What the line of a device is like for good.
    func quality(of device: Int) -> LineQuality

    /// Whether a fault strikes the request or answer of a device that is being sent.
    func strikes(_ fault: Fault, device: Int) -> Bool

    /// Is told what happened, for those who want to know.
    func note(_ observation: @autoclosure () -> Observation)
}

extension VirtualWorld {
    package func after(_ milliseconds: Int64, _ body: @escaping () -> Void) {
        at(now + milliseconds, body)
    }
}
