// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import Ubiquity
internal import UbiquityCore

/// A cloud inside a test: a server, people's accounts, and devices on which apps open stores.
/// <!-- Snippets/TestingYourApp.swift: first -->
/// ```swift
/// @Test func `a level reached on the phone is known on the laptop`() {
///     let cloud = TestCloud()
///     let phone = cloud.newDevice("phone")
///     let laptop = cloud.newDevice("laptop")
///     let game = Game(phone.openStore("TEAMID.com.example.game"))
///     let other = Game(laptop.openStore("TEAMID.com.example.game"))
///
///     game.finish(level: 13)
///     cloud.settle()
///     other.storeChanged()
///
///     #expect(other.best == 13)
///     #expect(laptop.notifications.map(\.changedKeys) == [["level"]])
/// }
/// ```
///
/// The stores are of the library's own class with its own rules; only their disks, clocks and
/// network are virtual. Nothing is written to disk, no socket is opened, and no thread is started.
///
/// **Time.** An app's reads and writes take effect at once; everything else happens when the test
/// lets time pass, with `settle()` or `advance(by:)`. Meanwhile notifications are posted and
/// sequences fed on the calling thread. Three calls need neither: `synchronize()` saves before it
/// returns, `synchronizeNow()` lets as much time pass as its round trip takes, and `initialSync()`
/// lets everything settle.
///
/// **Determinism.** A test in one task does the same in every run. What several tasks of an app do
/// at the same time depends on the order in which Swift runs them.
///
/// A cloud and its devices may be used from any thread. When the cloud and all of its devices have
/// been released, its stores continue in memory only.
public final class TestCloud: Sendable {
    let world: TestWorld
    /// The account that new devices are signed in to.
    public let account: TestAccount
    /// The server.
    public var server: TestServer { TestServer(cloud: self) }

    /// Creates a cloud with a server, an account, and no devices yet.
    ///
    /// - Parameters:
    ///   - seed: Determines everything random, such as how long each request takes.
    ///   - date: The start time, which the server and all clocks show.
    public init(
        seed: UInt64 = 1, startingAt date: Date = Date(timeIntervalSince1970: 1_800_000_000)
    ) {
        world = TestWorld(seed: seed, now: Int64((date.timeIntervalSince1970 * 1_000).rounded()))
        account = TestAccount(name: "account", number: world.newAccount("account"), world: world)
    }

    deinit { world.end() }

    /// The true time, unaffected by wrong clocks.
    public var now: Date { Date(milliseconds: world.now) }

    /// Creates the account of another person, or a second one of the same person.
    ///
    /// - Parameter name: The account's name, as in `UbiquityStatus.account`.
    public func newAccount(_ name: String) -> TestAccount {
        let number = world.inTurn { world.newAccount(name) }
        return TestAccount(name: name, number: number, world: world)
    }

    /// Seals an account, as `ubiquity encryption on` does: the server keeps its values so that it cannot
    /// read them, and its history of them begins anew. Called again, it gives the account another key.
    ///
    /// The account's devices have the key at once, and those that sign in later, unless they are locked:
    /// see ``TestDevice/signIn(to:isLocked:file:line:)``.
    ///
    /// - Parameters:
    ///   - account: The account; nil for the cloud's first.
    ///   - file: The file named in error messages.
    ///   - line: The line named in error messages.
    public func seal(
        _ account: TestAccount? = nil, file: StaticString = #fileID, line: UInt = #line
    ) {
        let account = account ?? self.account
        account.mustBe(of: world, file, line)
        precondition(
            server.isRunning, "A server that is stopped seals nothing.", file: file, line: line)
        world.inTurn { world.seal(account.number) }
    }

    /// Creates a device with a correct clock and a good network, on which no app has run yet.
    ///
    /// - Parameters:
    ///   - name: Used in error messages.
    ///   - isSignedIn: Whether it is signed in to ``account``.
    public func newDevice(_ name: String, isSignedIn: Bool = true) -> TestDevice {
        let machine = world.inTurn { world.newMachine(name) }
        let device = TestDevice(cloud: self, machine: machine)
        if isSignedIn { device.signIn(to: account) }
        return device
    }
}

/// A person's account in a ``TestCloud``.
public struct TestAccount: Hashable, Sendable {
    /// The account's name.
    public let name: String
    let number: Int
    /// The cloud that the account belongs to.
    private let cloud: UUID

    init(name: String, number: Int, world: TestWorld) {
        self.name = name
        self.number = number
        cloud = world.name
    }

    func mustBe(of world: TestWorld, _ file: StaticString, _ line: UInt) {
        precondition(
            cloud == world.name, "\"\(name)\" is an account of another cloud.", file: file,
            line: line)
    }
}
