// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// A device's engine that leads, is signed in and has writes that wait, and what a server says to
/// it. Its disk and its clock are of the best kind.
struct EngineTrial {
    private var engine: SyncEngine
    private var now = ClockReading(wall: Samples.milliseconds, uptime: 60_000, boot: 1)
    private var stream = 0
    private var push: Int?
    private var pull: Int?

    /// So much for one event is no work but a loop.
    private static let effectsMax = 1_000

    init(disk: DiskChanges = DiskChanges(), leads: Bool = true) {
        var settings = SyncEngine.Settings()
        settings.emptyMax = 2
        engine = SyncEngine(disk: disk, settings: settings, seed: 1, at: now)
        engine.handle(.leading(leads), at: now)
        let account = disk.meta.account ?? "account"
        engine.handle(.signedIn(account: account, device: Samples.device), at: now)
        try? engine.write(Samples.key, .value(.integer(1)), at: now)
        try? engine.write(
            [Samples.key: .value(.integer(2)), Samples.otherKey: .deleted], at: now)
    }

    mutating func hear(_ message: StreamMessage) throws {
        try settle()
        engine.handle(.streamReceived(stream, message), at: now)
        try settle()
    }

    /// As far as `ready`, with a push and a pull under way.
    mutating func connect(_ config: ServerConfig = Samples.config) throws {
        try hear(.changes(Samples.emptyStore))
        try hear(.ready(Samples.cursor, config))
        _ = engine.requestSync(at: now)
        try settle()
    }

    /// As a process that does not lead asks the one that does.
    mutating func ask() throws {
        _ = engine.requestSync(at: now)
        try settle()
        engine.handle(.leading(true), at: now)
        try settle()
    }

    mutating func write() throws {
        for number in 0..<3 {
            try? engine.write(Samples.key, .value(.integer(Int64(number))), at: now)
            try settle()
            try answer(
                PushAnswer(
                    cursor: Samples.cursor, serverMilliseconds: Samples.milliseconds,
                    results: [.committed([.applied])]))
        }
    }

    mutating func answer(_ answer: PushAnswer) throws {
        if let push { engine.handle(.pushAnswered(push, answer), at: now) }
        try settle()
    }

    mutating func pull(_ changes: ChangeSet) throws {
        if let pull { engine.handle(.pulled(pull, changes), at: now) }
        try settle()
    }

    mutating func fail(_ failure: LinkFailure) throws {
        if let push { engine.handle(.pushFailed(push, failure), at: now) }
        try settle()
        if let pull { engine.handle(.pullFailed(pull, failure), at: now) }
        try settle()
        engine.handle(.streamEnded(stream, failure), at: now)
        try settle()
        engine.handle(.hurry, at: now)
        try settle()
    }

    /// Does what the engine asks for, until it has nothing to ask, and lets a second pass.
    private mutating func settle() throws {
        for _ in 0..<Self.effectsMax {
            guard let effect = engine.nextEffect(at: now) else {
                now.uptime += 1_000
                now.wall += 1_000
                return try check()
            }
            perform(effect)
        }
        throw Broken("the engine does not come to rest")
    }

    private mutating func perform(_ effect: SyncEngine.Effect) {
        switch effect {
        case .save(let batch):
            engine.handle(.saved(version: batch.expectedVersion + 1), at: now)
        case .listen(let number, _, _): stream = number
        case .push(let number, _): push = number
        case .pull(let number, _, _, _): pull = number
        case .hangUp, .notify, .finishSync: break
        }
    }

    private func check() throws {
        var usage = Usage()
        for (key, value) in engine.contents { usage.replace(nil, by: value, of: key) }
        try must(usage == engine.usage, "the engine's usage does not add up")
        try must(engine.nextWake.map { $0 - now.uptime < .max } ?? true, "the engine never wakes")
    }
}
