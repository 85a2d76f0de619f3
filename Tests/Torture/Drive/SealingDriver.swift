// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import ProcessHarness
import Ubiquity
import UbiquityCore
import UbiquitySimulation

/// Has people seal an account, give it other keys, and unlock its devices, with commands that are killed
/// at any time; and, in peace, finish what they began.
struct SealingDriver {
    private let run: TortureRun
    private let listener: ServerListener
    private var random: RandomSource
    /// The recovery keys that were shown, the oldest first.
    private var recoveries: [String] = []
    /// Whether commands are killed.
    private var kills = true

    init(_ run: TortureRun, _ listener: ServerListener, seed: UInt64) {
        (self.run, self.listener) = (run, listener)
        random = RandomSource(seed: seed)
    }

    private var devices: [TortureDevice] {
        run.devices.filter { $0.account == listener.store.account && $0.door.wasOpen }
    }

    /// Until peace comes, and everything is sealed that is there, and every device has the key.
    mutating func work() async throws {
        while !run.isPeaceful {
            try Task.checkCancellation()
            await random.pause(milliseconds: run.plan.isQuick ? 500 : 5_000)
            guard let server = try? await AccountClient.sealing(listener.account),
                let device = devices.randomElement(using: &random)
            else { continue }
            if server.generation == 0 || !server.unsealed.isEmpty, random.chance(80) {
                try await seal(device, "on")
            } else if random.chance(30) {
                try await seal(device, "rotate")
            } else {
                try await unlock(device)
            }
        }
        kills = false
        let end = ContinuousClock.now + .seconds(TorturePlan.settlingSeconds)
        while try await !finish() {
            guard .now < end else {
                throw Trouble("account \(listener.store.account) stays unsealed")
            }
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    /// - Returns: Whether nothing is left to do.
    private mutating func finish() async throws -> Bool {
        guard let server = try? await AccountClient.sealing(listener.account) else { return false }
        let holders = try devices.filter { device in
            let keyring = try DeviceHome(path: device.home).load().keyring
            return keyring?.current == server.generation && keyring?.check == server.check
        }
        guard server.generation > 0, let holder = holders.first else {
            // The proposal of one of them may be the account's key by now.
            for device in devices { try await seal(device, "on") }
            if server.generation > 0, let device = devices.first { try await recover(device) }
            return false
        }
        if !server.unsealed.isEmpty { try await seal(holder, "on") }
        for device in devices where !holders.contains(where: { $0.number == device.number }) {
            try await unlock(device)
        }
        return server.unsealed.isEmpty && holders.count == devices.count
    }

    // MARK: - What people do

    /// Seals the account, or goes on; or gives it another key.
    private mutating func seal(_ device: TortureDevice, _ command: String) async throws {
        let input = Pipe()
        let path = ["encryption", command, "--yes", "--home", device.home]
        try await perform(path, on: device, input: input) { driver, child in
            try await until("a recovery key") {
                !child.isRunning || !device.door.isOpen || child.errors.contains("Type it here:")
            }
            let shown = child.errors.firstMatch(of: /(?:[0-9A-Z]{4}-){8}[0-9A-Z]{4}/)
            guard let key = shown.map({ String($0.0) }) else { return }
            driver.recoveries.append(key)
            try? input.fileHandleForWriting.write(contentsOf: Data("\(key)\n".utf8))
        }
    }

    /// Has another device give the keys to this one.
    private mutating func unlock(_ device: TortureDevice) async throws {
        let others = devices.filter { $0.number != device.number }
        guard let other = others.randomElement(using: &random) else { return }
        let path = ["unlock", "--home", device.home]
        try await perform(path, on: device) { driver, child in
            try await until("a code") {
                !child.isRunning || !device.door.isOpen || child.errors.contains("ubiquity:unlock")
            }
            guard let code = child.errors.firstMatch(of: /ubiquity:unlock[^\s']*/) else { return }
            let approve = ["approve", String(code.0), "--yes", "--home", other.home]
            if try await driver.perform(approve, on: other, body: { _, _ in }) != 0 { child.kill() }
        }
    }

    /// All devices with the newest key are older copies of themselves now.
    private mutating func recover(_ device: TortureDevice) async throws {
        for key in recoveries.reversed() {
            let input = Pipe()
            let path = ["unlock", "--recovery", "--home", device.home]
            let status = try await perform(path, on: device, input: input) { _, _ in
                try? input.fileHandleForWriting.write(contentsOf: Data("\(key)\n".utf8))
                try? input.fileHandleForWriting.close()
            }
            if status == 0 { return }
        }
    }

    // MARK: - Commands

    /// The signals of a program that broke down, and the status for what must not happen.
    private static let crashes: Set<Int32> = [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, 70]

    /// Runs a command on a device, perhaps to be killed.
    /// - Parameter body: What people do meanwhile.
    /// - Returns: The status; nil if the device is being copied.
    @discardableResult
    private mutating func perform(
        _ command: [String], on device: TortureDevice, input: Pipe? = nil,
        body: (inout Self, ChildProcess) async throws -> Void
    ) async throws -> Int32? {
        guard device.door.enter() else { return nil }
        defer { device.door.leave() }
        let child = try run.stage.start(command, input: input, environment: device.environment)
        defer { child.forget() }
        run.chronicle.count(.sealingCommands)
        run.chronicle.note("\(command.prefix(2).joined(separator: " ")) on device \(device.number)")
        let isKilled = kills && random.chance(30)
        let killer = Task { [pause = Int64.random(in: 0...1_500, using: &random)] in
            guard isKilled else { return }
            try await Task.sleep(for: .milliseconds(pause))
            child.kill()
        }
        defer { killer.cancel() }
        try await body(&self, child)
        try await until("the end of a command, or that a device is copied") {
            !child.isRunning || !device.door.isOpen
        }
        if child.isRunning || isKilled { child.kill() }
        let status = try await child.exit()
        run.chronicle.note("ended with \(status): \(isKilled ? "killed" : child.lastWords)")
        if isKilled { run.chronicle.count(.commandKills) }
        if Self.crashes.contains(status) {
            run.chronicle.complain("\(command) ended with \(status): \(child.lastWords)")
        }
        return status
    }
}
