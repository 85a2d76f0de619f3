// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import ProcessHarness
import Ubiquity
import UbiquityCore

/// Has accounts come and go on a device of its own, by commands that are killed between the steps of
/// their files, while another program has the store open.
///
/// It answers for the disk: what was acknowledged stays with its account, nothing of one account comes
/// to another, and of an account that was wiped nothing is left after the next start.
struct AccountDriver {
    private let run: TortureRun
    private let home: String
    private var random: RandomSource
    private var codes: [String: String] = [:]
    private var watcher: ChildProcess?
    /// The acknowledged values, by the folder that they are in.
    private var acknowledged: [String: [Key: PropertyListValue]] = [:]
    private var round = 0

    private static let store = "TEAM.example.accounts"
    private static let people = ["ann", "bob", "cid"]
    private static let nobody = "nobody"

    init(_ run: TortureRun, seed: UInt64) {
        self.run = run
        home = run.stage.path("accounts")
        random = RandomSource(seed: seed)
    }

    mutating func work() async throws {
        for person in Self.people { try await makeAccount(person) }
        while !run.isPeaceful {
            try Task.checkCancellation()
            round += 1
            if random.chance(30) { try await restartWatcher() }
            for number in 0..<Int.random(in: 1...3, using: &random) { try await write(number) }
            try await change()
            try await checkDisk()
        }
        if let watcher { try await kill(watcher) }
    }

    /// The server may be killed meanwhile, with the account made or not.
    private mutating func makeAccount(_ person: String) async throws {
        try await until("\(person)'s account") {
            codes[person] = try? await run.newCode(isFirst: true, account: person)
            if codes[person] == nil {
                codes[person] = try? await run.newCode(account: person)
            }
            return codes[person] != nil || run.isPeaceful
        }
    }

    // MARK: - What happens

    private mutating func restartWatcher() async throws {
        if let watcher { try await kill(watcher) }
        watcher = try command("watch", ["--store", Self.store, "--local"])
    }

    /// A command writes, and it is acknowledged by its status.
    private mutating func write(_ number: Int) async throws {
        let state = try load()
        let owner = Self.owner(of: state.folder, state)
        let (name, text) = ("r\(round).\(number)", "\(owner) \(round)")
        let child = try command("set", ["--store", Self.store, "--local", name, "--string", text])
        if random.chance(20) {
            await random.pause(milliseconds: 100)
            return try await kill(child)
        }
        try await end(child)
        guard child.status == 0 else {
            throw Trouble("`set` ended with \(child.status): \(child.lastWords)")
        }
        acknowledged[state.folder, default: [:]][try Key(name)] = .string(ExactString(text))
        child.forget()
    }

    /// Somebody signs in or out, as far as that comes.
    private mutating func change() async throws {
        let person = Self.people[Int.random(in: 0..<Self.people.count, using: &random)]
        let child: ChildProcess
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<40: child = try command("sign-out", ["--wipe", "--yes", "--timeout", "2"])
        case 40..<50: child = try command("sign-out", ["--timeout", "2"])
        default:
            guard let code = try await code(for: person) else { return }
            child = try command(
                "sign-in", ["--server", run.front.url, "--code", code, "--replace"])
        }
        run.chronicle.count(.accountChanges)
        if random.chance(60) {
            try await killBetween(child)
        } else {
            try await end(child)
            child.forget()
        }
    }

    /// A code works once, and is used up by a sign-in that was killed after it. Nil: the server is down.
    private mutating func code(for person: String) async throws -> String? {
        if let code = codes.removeValue(forKey: person) { return code }
        return try? await run.newCode(account: person)
    }

    /// Kills it at any time, or as soon as it has saved.
    private mutating func killBetween(_ child: ChildProcess) async throws {
        let path = home + "/" + DeviceHome.accountFileName
        let before = Self.file(path)
        let end = ContinuousClock.now.advanced(
            by: .milliseconds(random.chance(70) ? 10_000 : Int.random(in: 0...150, using: &random)))
        while child.isRunning, Self.file(path) == before, ContinuousClock.now < end {
            try await Task.sleep(for: .microseconds(100))
        }
        try await kill(child)
    }

    // MARK: - What must be so

    private mutating func checkDisk() async throws {
        let state = try load()
        let folders = Set(state.folders.values.map(\.string)).union([state.folder])
        acknowledged = acknowledged.filter { folders.contains($0.key) }
        let wiped = "the end of a wiping at the next start; the device is in \(folders.sorted())"
        try await until(wiped) {
            let start = try command("get", ["--store", Self.store, "--local", "none"])
            try await end(start)
            start.forget()
            return Self.names(in: home + "/stores").isSubset(of: folders)
        }
        for folder in folders { try check(folder, state) }
    }

    private func check(_ folder: String, _ state: DeviceState) throws {
        let path = try DeviceHome(path: home).storePath(for: Self.store, folder: folder)
        let expected = acknowledged[folder] ?? [:]
        guard FileManager.default.fileExists(atPath: path) || !expected.isEmpty else { return }
        let values = try TortureDevice.readFile(path)
        for (key, value) in expected where values[key] != value {
            run.chronicle.complain(
                "\(key) was acknowledged in folder \(folder), which has "
                    + "\(values[key].map { "\($0)" } ?? "nothing") for it")
        }
        let owner = Self.owner(of: folder, state)
        for (key, value) in values {
            guard case .string(let text) = value,
                let author = text.string.split(separator: " ").first.map(String.init)
            else { continue }
            if author != owner, author != Self.nobody, owner != Self.nobody {
                run.chronicle.complain("\(author)'s \(key) has come to \(owner)")
            }
        }
    }

    private static func owner(of folder: String, _ state: DeviceState) -> String {
        state.folders.first { $0.value.string == folder }?.key.string ?? nobody
    }

    // MARK: - Files and processes

    private func load() throws -> DeviceState { try DeviceHome(path: home).load() }

    private static func names(in folder: String) -> Set<String> {
        Set((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
    }

    /// Changes when another file takes its place.
    private static func file(_ path: String) -> Int? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.systemFileNumber] as? NSNumber)?.intValue
    }

    private func command(_ name: String, _ options: [String]) throws -> ChildProcess {
        try run.stage.start([name, "--home", home] + options)
    }

    private func end(_ child: ChildProcess) async throws {
        try await until("the end of a command") { !child.isRunning }
    }

    private func kill(_ child: ChildProcess) async throws {
        child.kill()
        try await end(child)
        child.forget()
        run.chronicle.count(.commandKills)
    }
}
