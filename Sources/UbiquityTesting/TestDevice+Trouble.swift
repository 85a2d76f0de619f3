// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

extension TestDevice {
    // MARK: - Network

    /// Whether the device has a network connection.
    public var isOnline: Bool { change { $0.device.isOnline } }

    /// Disconnects the network. The device notices at once, and keeps retrying.
    public func goOffline() { change { $0.device.goOffline() } }

    /// Reconnects the network. The device notices at its next attempt, within a minute.
    public func goOnline() { change { $0.device.goOnline() } }

    /// The quality of the device's network from now on.
    public var network: TestNetwork {
        get { change { $0.network } }
        set { change { $0.network = newValue } }
    }

    // MARK: - Clock

    /// The time that the device's clock shows.
    public var now: Date { Date(milliseconds: machine.reading.wall) }

    /// The lead of the device's clock; negative if it is behind. May be set at any time, as a
    /// person sets a clock.
    public var clockError: Duration {
        get { .milliseconds(machine.clockError) }
        set { change { $0.clockError = newValue.milliseconds } }
    }

    // MARK: - Account

    /// The account that the device is signed in to; nil if there is none.
    public var account: TestAccount? {
        change { machine in
            machine.device.account.map {
                TestAccount(
                    name: cloud.world.accountNames[$0 - 1], number: $0, world: cloud.world)
            }
        }
    }

    /// Signs the device in for all its apps, replacing any current sign-in. Stores follow when time
    /// passes.
    ///
    /// `NSUbiquityIdentityDidChange` is not posted, because it names no device and would reach
    /// tests that run at the same time.
    ///
    /// - Parameters:
    ///   - account: The account.
    ///   - isLocked: Whether it does not get the keys of a sealed account, as by a code without them.
    ///   - file: The file named in error messages.
    ///   - line: The line named in error messages.
    public func signIn(
        to account: TestAccount, isLocked: Bool = false, file: StaticString = #fileID,
        line: UInt = #line
    ) {
        account.mustBe(of: cloud.world, file, line)
        change {
            $0.device.signIn(
                account.number, accountName: account.name, deviceName: $0.name, isLocked: true)
            if !isLocked { $0.device.takeKeys() }
        }
    }

    /// Gives the device the keys of its account, as `ubiquity unlock` does. Stores follow when time
    /// passes. Does nothing if the account is not sealed.
    public func unlock() { change { $0.device.takeKeys() } }

    /// Signs the device out for all its apps. Stores follow when time passes.
    ///
    /// - Parameter wipes: Whether the account's values, unsent ones included, are removed from the
    ///   device.
    public func signOut(wipes: Bool = false) { change { $0.device.signOut(wipes: wipes) } }

    // MARK: - Disk

    /// Whether the disk refuses every save.
    public var isDiskFull: Bool {
        get { change { $0.isDiskFull } }
        set { change { $0.isDiskFull = newValue } }
    }
}
