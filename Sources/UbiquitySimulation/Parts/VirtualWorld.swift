// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

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

    /// The keys of an account; nil if it is not sealed.
    func keyring(of account: Int) -> Keyring?

    /// What the server does that keeps no rule; nil if it keeps all.
    var hostile: HostileServer? { get }

    /// The identifier of a store, from which its keys are derived.
    func identifier(ofStore number: Int) -> StoreIdentifier

    /// Records an observation.
    func note(_ observation: @autoclosure () -> Observation)
}

extension VirtualWorld {
    package func after(_ milliseconds: Int64, _ body: @escaping () -> Void) {
        at(now + milliseconds, body)
    }

    package func keyring(of account: Int) -> Keyring? { nil }

    package var hostile: HostileServer? { nil }

    /// The number of the key that an account is sealed with; 0 if it is not.
    func generation(of account: Int) -> UInt32 { server.sealings[account]?.generation ?? 0 }

    /// A new key for an account, as a device proposes it.
    package func proposal(after keyring: Keyring?) -> Keyring? {
        let bytes = (0..<Bytes32.count).map { _ in UInt8(truncatingIfNeeded: chance.number()) }
        return Bytes32(bytes).flatMap { (keyring ?? Keyring([:])).adding($0, at: 0) }
    }

    /// What a server of a sealed account has, as the devices see it.
    package func opener(of store: StoreReference) -> Opener {
        guard let keyring = keyring(of: store.account) else { return Opener() }
        let identifier = identifier(ofStore: store.store)
        var older = keyring
        older.roots[keyring.current] = nil
        return Opener(
            sealer: keyring.sealer(of: identifier), older: older.sealer(of: identifier))
    }

    package func identifier(ofStore number: Int) -> StoreIdentifier {
        guard let identifier = try? StoreIdentifier("store\(number)") else {
            preconditionFailure("A store's name is not an identifier.")
        }
        return identifier
    }
}
