// SPDX-License-Identifier: Apache-2.0

public import Foundation
package import UbiquityCore

/// A value that a key had, or a write of it that never became its value.
///
/// Under a conflict policy it is the value that the writes of all devices made together.
public struct UbiquityVersion: Hashable, Sendable {
    /// A device that wrote a version.
    public struct Author: Hashable, Sendable {
        /// 16 hexadecimal digits.
        public var id: String
        /// Its name; nil if the account has no such device any more, or this device may not see the
        /// others.
        public var name: String?
        /// Whether it is this device.
        public var isThisDevice: Bool
    }

    /// The fate of a version.
    public enum Outcome: Hashable, Sendable {
        /// It waits on this device, and no other has it.
        case waiting
        /// It is the key's value.
        case current
        /// Another write replaced it at that time, by the server's clock.
        case replaced(by: Author, at: Date)
        /// When it came to the server, a write was there that had been made later, at that time.
        case lost(to: Author, madeAt: Date)
        /// The server did not take it, for the reason in this sentence, or it was not sent, because a
        /// later write came from the server before. Only this device has it.
        case refused(reason: String)
        /// Not a version: the values that the key had from then until the next version are not in the
        /// history any more. It has no value, and ``UbiquityAdditions/revert(_:to:)`` refuses it.
        case gap
    }

    /// When it was written, by the shared clock of all devices.
    public var date: Date
    /// When the server got it, by the server's clock; nil if it did not, or if that is not known.
    public var received: Date?
    /// The device that wrote it. Under a policy, the one whose write came last.
    public var author: Author
    /// The fate of the version.
    public var outcome: Outcome

    let content: PropertyListValue?

    /// The value, boxed as by ``UbiquitousKeyValueStore/object(forKey:)``; nil if the key was
    /// removed.
    public var value: Any? { content?.boxed }

    init(_ version: KeyVersion, _ devices: AccountDevices) {
        date = Date(milliseconds: version.stamp.timestamp.milliseconds)
        received = version.came.flatMap { came in
            came.milliseconds > 0 ? Date(milliseconds: came.milliseconds) : nil
        }
        author = devices.author(version.stamp.device)
        content = version.value
        switch version.outcome {
        case .waiting: outcome = .waiting
        case .current: outcome = .current
        case .replaced(let moment, let stamp):
            outcome = .replaced(
                by: devices.author(stamp.device), at: Date(milliseconds: moment.milliseconds))
        case .lost(_, let stamp):
            outcome = .lost(
                to: devices.author(stamp.device),
                madeAt: Date(milliseconds: stamp.timestamp.milliseconds))
        case .refused(let refusal): outcome = .refused(reason: refusal.detail)
        case .gap: outcome = .gap
        }
    }
}

/// A store as it was, see ``UbiquityAdditions/values(at:)``.
public struct UbiquitySnapshot: Sendable {
    let contents: [Key: PropertyListValue]
    /// The keys whose earlier value is not known, because they have changed too often since, or are
    /// kept out of the history. Sorted.
    public var forgottenKeys: [String]

    /// The values, boxed as by ``UbiquitousKeyValueStore/object(forKey:)``.
    public var values: [String: Any] {
        Dictionary(contents.map { ($0.key.string, $0.value.boxed) }) { first, _ in first }
    }
}

/// The account's devices, as far as this one may know them.
package struct AccountDevices: Sendable {
    /// This device; nil if it is not signed in.
    package var own: DeviceID?
    package var names: [DeviceID: String]

    func author(_ id: DeviceID) -> UbiquityVersion.Author {
        UbiquityVersion.Author(
            id: id.description, name: names[id], isThisDevice: id == own || id == .unassigned)
    }
}
