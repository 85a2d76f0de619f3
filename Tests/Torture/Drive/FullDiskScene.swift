// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import ProcessHarness
import TortureLanguage

/// Fills a disk, step by step, while nothing else goes wrong: errors must be clear, acknowledged
/// writes must survive, and everything must go on when there is room. In the storm that follows,
/// disks are full too, but by then SQLite's logs have room of their own.
struct FullDiskScene {
    let run: TortureRun

    /// More than the log of a new store has room for.
    private static let padding = 60_000
    private static let keys = ["k0", "k1"]

    func play() async throws {
        if let disk = run.smallDisks[.deviceDisksFull] { try await playDevice(disk) }
        if let disk = run.smallDisks[.serverDisksFull] { try await playServer(disk) }
    }

    private func playDevice(_ disk: SmallDisk) async throws {
        let app = try await start("full-disk", on: run.devices[0])
        run.write([Self.keys[0]], padding: 0, by: app)
        try await expectSave(app, "before the disk is full") { $0 == nil }
        fill(disk, .deviceDisksFull)
        run.write([Self.keys[1]], padding: Self.padding, by: app)
        try await expectSave(app, "on a full disk") { $0?.contains("no room") ?? false }
        disk.makeRoom()
        try await expectSave(app, "when there is room again") { $0 == nil }
        let values = try run.devices[0].readDisk()
        if values.count != Self.keys.count {
            run.chronicle.complain("the disk has \(values.keys.sorted()) after it was full")
        }
        try await end(app)
    }

    private func playServer(_ disk: SmallDisk) async throws {
        let app = try await start("full-server", on: run.devices[0])
        fill(disk, .serverDisksFull)
        run.write([Self.keys[0]], padding: Self.padding, by: app)
        let failure = try await roundTrip(app)
        if !(failure?.contains("full") ?? false) {
            run.chronicle.complain("a round trip to a full server: \(failure ?? "success")")
        }
        disk.makeRoom()
        try await until("a round trip when the server has room again") {
            try await roundTrip(app) == nil
        }
        try await end(app)
    }

    // MARK: - Steps

    private func start(_ name: String, on device: TortureDevice) async throws -> AppProcess {
        let app = try run.startApp(name, on: device)
        try await until("the start of \(name)") { app.isOpen || !app.isRunning }
        guard app.isOpen else { throw Trouble("\(name) could not start: \(app.lastWords)") }
        return app
    }

    private func fill(_ disk: SmallDisk, _ event: Tally.Event) {
        run.chronicle.count(event)
        run.chronicle.note("\(event.rawValue): \(disk.folder)")
        disk.fill()
    }

    private func expectSave(
        _ app: AppProcess, _ when: String, _ isRight: (String?) -> Bool
    ) async throws {
        let seen = app.saves.count
        app.send(.save)
        try await until("an answer to a save \(when)") { app.saves.count > seen }
        let failure = app.saves.last ?? nil
        if !isRight(failure) {
            run.chronicle.complain("a save \(when): \(failure ?? "success")")
        }
    }

    /// - Returns: Why it failed; nil: it did not.
    private func roundTrip(_ app: AppProcess) async throws -> String? {
        let number = run.newNumber()
        app.send(.roundTrip(number))
        try await until("the end of a round trip") {
            app.roundTrips[number] != nil
        }
        return app.roundTrips[number] ?? nil
    }

    /// With small values again.
    private func end(_ app: AppProcess) async throws {
        for key in Self.keys { run.write([key], padding: 0, by: app) }
        try await expectSave(app, "at the end") { $0 == nil }
        try await app.kill("is killed")
        run.chronicle.count(.deviceKills)
    }
}
