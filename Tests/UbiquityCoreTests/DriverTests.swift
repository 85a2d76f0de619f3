// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite final class `A driver` {
    private var driver = Driver(
        content: DiskChanges(version: 1), device: DeviceState(),
        store: try? StoreIdentifier("store"), seed: 1,
        at: ClockReading(wall: 1_800_000_000_000, uptime: 0, boot: 1))
    private var now: Int64 = 0

    private static func reading(_ uptime: Int64) -> ClockReading {
        ClockReading(wall: 1_800_000_000_000 + uptime, uptime: uptime, boot: 1)
    }

    // MARK: - The order

    @Test func `reads what was saved between its opening and its watch, before it leads`() {
        receive(.leading(file: 0, true))
        #expect(next() == .readAccount)
        #expect(next() == nil)
        receive(.accountRead(DeviceState()))
        #expect(next() == .read(after: 1))
        #expect(!driver.engine.isLeading)
        receive(.fileRead(DiskChanges(version: 2)))
        #expect(driver.engine.isLeading)
        #expect(driver.engine.diskVersion == 2)
    }

    @Test func `reads again for a lease that came while it was reading`() {
        rest()
        receive(.fileSignalled)
        #expect(next() == .read(after: 1))
        receive(.leading(file: 0, true))
        receive(.fileRead(nil))
        #expect(!driver.engine.isLeading)
        #expect(next() == .read(after: 1))
        receive(.fileRead(nil))
        #expect(driver.engine.isLeading)
    }

    @Test func `takes no lease of a file that it has left`() throws {
        rest()
        try turn()
        rest()
        receive(.leading(file: 0, true))
        rest()
        #expect(!driver.engine.isLeading)
        receive(.leading(file: 1, true))
        rest()
        #expect(driver.engine.isLeading)
    }

    @Test func `has no other step while one that touches the file is under way`() throws {
        rest()
        try write("a")
        guard case .effect(.save) = next() else { return record("nothing was saved") }
        try write("b")
        receive(.fileSignalled)
        receive(.synchronize)
        #expect(next() == nil)
        #expect(driver.nextWake == nil)
        receive(.engine(.saved(version: 2)))
        #expect(next() == .read(after: 2))
    }

    @Test func `synchronizes after what was written meanwhile is saved as well`() throws {
        rest()
        try write("a")
        receive(.synchronize)
        #expect(next() == .read(after: 1))
        receive(.fileRead(nil))
        guard case .effect(.save) = next() else { return record("nothing was saved") }
        try write("b")
        receive(.engine(.saved(version: 2)))
        guard case .effect(.save) = next() else { return record("b was not saved") }
        receive(.engine(.saved(version: 3)))
        #expect(next() == .synchronized(true))
        #expect(next() == nil)
    }

    @Test func `is scheduled once for all that happens until it has come to rest`() throws {
        let first = driver.schedule()
        try write("a")
        let second = driver.schedule()
        rest()
        let afterRest = driver.schedule()
        #expect([first, second, afterRest] == [true, false, true])
    }

    @Test func `saves before it ends, and does nothing after that`() throws {
        rest()
        try write("a")
        receive(.close)
        guard case .effect(.save) = next() else { return record("nothing was saved") }
        receive(.engine(.saved(version: 2)))
        #expect(next() == .close)
        try write("b")
        receive(.fileSignalled)
        receive(.synchronize)
        #expect(next() == nil)
        #expect(driver.nextWake == nil)
    }

    // MARK: - Another account

    @Test func `turns to another account's file when all is saved in its own`() throws {
        rest()
        try write("mine")
        receive(.accountRead(other))
        guard case .effect(.save) = next() else { return record("nothing was saved") }
        #expect(driver.isLeaving)
        receive(.engine(.saved(version: 2)))
        #expect(next() == .open(folder: "2"))
        try write("late")
        receive(.opened(DiskChanges(version: 7)))
        guard case .effect(.save) = next() else { return record("the last write was not saved") }
        receive(.engine(.saved(version: 3)))
        #expect(next() == .use(file: 1))
        #expect(driver.engine.values.isEmpty)
        #expect(driver.folder == "2")
        #expect(driver.signedIn?.account == "work")
    }

    @Test func `stays with a file whose account is back before it was left`() throws {
        rest()
        receive(.accountRead(other))
        #expect(effects().last == .open(folder: "2"))
        var back = other
        back.signIn(account("home"))
        receive(.opened(DiskChanges()))
        receive(.accountRead(back))
        #expect(effects().contains(.release))
        #expect(driver.folder == "1")
        #expect(driver.engine.isSignedIn)
        // The file that was let go is opened again when the account comes back.
        receive(.accountRead(other))
        #expect(effects().last == .open(folder: "2"))
    }

    @Test func `tries the file of one account at once where that of another could not be opened`()
        throws
    {
        rest()
        receive(.accountRead(other))
        _ = effects()
        var third = other
        third.signIn(account("third"))
        receive(.unopened("no room"))
        receive(.accountRead(third))
        #expect(effects().contains(.open(folder: "3")))
        receive(.opened(DiskChanges()))
        _ = effects()
        #expect(driver.folder == "3")
        #expect(driver.nextWake == nil || driver.nextWake! > now)
    }

    @Test func `does not save what is wiped`() throws {
        rest()
        try write("mine")
        guard case .effect(.save) = next() else { return record("nothing was saved") }
        receive(.engine(.saveFailed("the folder is gone")))
        var state = home
        _ = state.signOutWiping()
        receive(.accountRead(state))
        #expect(effects().last == .open(folder: "2"))
        receive(.opened(DiskChanges()))
        #expect(steps().contains(.use(file: 1)))
    }

    @Test func `shows nothing of the account it left where the other file cannot be opened`()
        throws
    {
        rest()
        try write("mine")
        rest()
        receive(.accountRead(other))
        #expect(effects().last == .open(folder: "2"))
        receive(.unopened("no room"))
        let steps = effects()
        #expect(steps.contains(.use(file: 1)))
        #expect(
            steps.contains(
                .report("the file of the account that signed in cannot be opened: no room")))
        #expect(driver.engine.values.isEmpty)
    }

    @Test func `keeps what is written unsaved until the other file can be opened, and joins it`()
        throws
    {
        rest()
        receive(.accountRead(other))
        _ = effects()
        receive(.unopened("no room"))
        _ = effects(savingFails: true)
        try write("new")
        receive(.synchronize)
        #expect(effects(savingFails: true).last == .synchronized(false))
        var steps: [Driver.Step] = []
        while !steps.contains(.open(folder: "2")), let wake = driver.nextWake {
            now = wake
            steps = effects(savingFails: true)
        }
        #expect(!driver.engine.isSignedIn)
        receive(.opened(DiskChanges(version: 3, entries: [try stored("old")])))
        #expect(effects().contains(.use(file: 2)))
        #expect(driver.engine.isSignedIn)
        receive(.fileRead(nil))
        receive(.synchronize)
        #expect(next() == .read(after: 3))
        receive(.fileRead(nil))
        let reopened = effects()
        #expect(reopened.contains { if case .connect = $0 { true } else { false } })
        #expect(reopened.last == .synchronized(true))
        #expect(driver.engine.values.keys.sorted() == [try Key("new"), try Key("old")])
        #expect(driver.nextWake == nil)
    }

    @Test func `parks what it wrote in the file of its account, which opens while it is left`()
        throws
    {
        rest()
        receive(.accountRead(other))
        _ = effects()
        receive(.unopened("no room"))
        _ = effects(savingFails: true)
        try write("new")
        var third = other
        third.signIn(account("third"))
        receive(.accountRead(third))
        var steps: [Driver.Step] = []
        while !steps.contains(.open(folder: "2")), let wake = driver.nextWake {
            now = wake
            steps = effects(savingFails: true)
        }
        receive(.opened(DiskChanges(version: 3)))
        #expect(next() == .use(file: 2))
        #expect(!driver.engine.isSignedIn)
        receive(.leading(file: 2, true))
        #expect(next() == .read(after: 3))
        receive(.fileRead(nil))
        let left = effects()
        #expect(left.last == .open(folder: "3"))
        for case .effect(.save(let batch)) in left { #expect(batch.meta?.account == nil) }
        for case .effect(.listen) in left { record("a link of the account that is left") }
        receive(.opened(DiskChanges()))
        #expect(effects().contains(.use(file: 3)))
        #expect(driver.signedIn?.account == "third")
    }

    // MARK: - What cannot be read

    @Test func `reads a file that failed again after a while, and not at every turn`() {
        rest()
        receive(.fileSignalled)
        #expect(next() == .read(after: 1))
        receive(.fileUnreadable("a bad sector"))
        #expect(driver.status.diskFailure == "a bad sector")
        #expect(next() == nil)
        var waits: [Int64] = []
        for _ in 0..<10 {
            guard let wake = driver.nextWake else { return record("it does not try again") }
            waits.append(wake - now)
            now = wake
            #expect(next() == .read(after: 1))
            receive(.fileUnreadable("a bad sector"))
            #expect(next() == nil)
        }
        #expect(waits.allSatisfy { $0 >= 100 })
        #expect(waits.last! > 30_000)
        now = driver.nextWake!
        #expect(next() == .read(after: 1))
        receive(.fileRead(nil))
        #expect(next() == nil)
        #expect(driver.nextWake == nil)
        #expect(driver.status.diskFailure == nil)
    }

    @Test func `synchronizes again as soon as the disk answers`() {
        rest()
        receive(.synchronize)
        #expect(next() == .read(after: 1))
        receive(.fileUnreadable("a bad sector"))
        #expect(next() == .synchronized(false))
        receive(.synchronize)
        #expect(next() == .read(after: 1))
        receive(.fileRead(nil))
        #expect(next() == .synchronized(true))
    }

    @Test func `forgets a save that failed when another process has saved the same`() throws {
        rest()
        try write("a")
        guard case .effect(.save(let batch)) = next() else { return record("nothing was saved") }
        receive(.engine(.saveFailed("the answer was lost")))
        #expect(next() == nil)
        receive(.fileSignalled)
        #expect(next() == .read(after: 1))
        receive(
            .fileRead(
                DiskChanges(version: 2, entries: batch.entries, meta: batch.meta ?? StoredMeta())))
        #expect(next() == nil)
        #expect(driver.status.diskFailure == nil)
        #expect(driver.nextWake == nil)
        receive(.synchronize)
        #expect(next() == .read(after: 2))
        receive(.fileRead(nil))
        #expect(next() == .synchronized(true))
    }

    @Test func `does not lead a file that it cannot read`() {
        rest()
        receive(.leading(file: 0, true))
        #expect(next() == .read(after: 1))
        receive(.fileUnreadable("a bad sector"))
        #expect(next() == nil)
        #expect(!driver.engine.isLeading)
    }

    @Test func `reads a sign-in that failed again, and says so once`() {
        rest()
        receive(.accountSignalled)
        #expect(next() == .readAccount)
        receive(.accountUnreadable("too many open files"))
        #expect(next() == .report("the sign-in cannot be read: too many open files"))
        for _ in 0..<3 {
            #expect(next() == nil)
            now = driver.nextWake ?? now
            #expect(next() == .readAccount)
            receive(.accountUnreadable("too many open files"))
        }
        now = driver.nextWake ?? now
        #expect(next() == .readAccount)
        receive(.accountRead(home))
        #expect(driver.engine.isSignedIn)
    }

    // MARK: - Support

    private func account(_ name: String) -> SignedInAccount {
        SignedInAccount(
            server: "", account: name, accountName: name, device: "00000000000000a1",
            deviceName: "", credential: "")
    }

    private var home: DeviceState {
        var state = DeviceState()
        state.signIn(account("home"))
        return state
    }

    private var other: DeviceState {
        var state = home
        state.signIn(account("work"))
        return state
    }

    private func receive(_ event: Driver.Event) {
        driver.handle(event, at: Self.reading(now))
    }

    private func next() -> Driver.Step? { driver.next(at: Self.reading(now)) }

    /// The next steps, up to one that has an answer.
    private func steps() -> [Driver.Step] {
        var steps: [Driver.Step] = []
        while let step = next() { steps.append(step) }
        return steps
    }

    /// The same, answering saves.
    private func effects(savingFails: Bool = false) -> [Driver.Step] {
        var steps: [Driver.Step] = []
        while let step = next() {
            steps.append(step)
            guard case .effect(.save(let batch)) = step else { continue }
            receive(
                .engine(
                    savingFails
                        ? .saveFailed("not open") : .saved(version: batch.expectedVersion + 1)))
        }
        return steps
    }

    /// Does all there is, on a disk and a sign-in that have nothing new.
    private func rest() {
        while let step = next() {
            switch step {
            case .readAccount: receive(.accountRead(driver.device ?? DeviceState()))
            case .read: receive(.fileRead(nil))
            case .effect(.save(let batch)):
                receive(.engine(.saved(version: batch.expectedVersion + 1)))
            case .open: receive(.opened(DiskChanges()))
            default: break
            }
        }
    }

    private func turn() throws {
        receive(.accountRead(other))
        rest()
    }

    private func write(_ key: String) throws {
        try driver.engine.write(try Key(key), .value(.integer(1)), at: Self.reading(now))
    }

    private func stored(_ name: String) throws -> StoredEntry {
        let stamp = Stamp(HybridTimestamp(rawValue: 1), DeviceID(rawValue: 7))
        return StoredEntry(
            key: try Key(name),
            confirmed: Record(key: try Key(name), content: .value(.integer(2)), stamp: stamp))
    }

    private func record(_ problem: String) { Issue.record("\(problem)") }
}
