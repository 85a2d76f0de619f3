// SPDX-License-Identifier: Apache-2.0

/// One store: what happened, as words of its shell, and what to do.
final class Engine {
    var driver: Driver
    private var boot: UInt64
    var requests: Requests
    var steps: [PropertyListValue] = []
    /// The app's numbers of its round trips.
    private var trips: [Int: Int64] = [:]
    /// The values that the app's own rule is asked for.
    private var conflicts: [Int64: Conflict] = [:]
    /// The same of the past.
    var pastConflicts: [Int64: PastConflict] = [:]
    var conflictsTaken: Int64 = 0
    /// What waits for the app's rule.
    var questions: [Question] = []
    private var watch = LeaderWatch()

    init(
        starting event: StoredFields, wall: Double, uptime: Double
    ) throws(StoredFieldError) {
        guard let seed = UInt64(try event.text("seed"), radix: 16) else {
            throw .otherType("seed")
        }
        boot = StableHash(try event.text("boot")).value
        let store = try event.text("store")
        requests = Requests(store: store)
        var settings = SyncEngine.Settings()
        settings.firstSync = try event.choice("firstSync") ?? settings.firstSync
        settings.unkept = Set(try event.keys("unkept").map { $0.name })
        driver = Driver(
            content: try event.fields("content").map(DiskChanges.init) ?? DiskChanges(),
            device: try event["device"].map(DeviceState.init(fields:)),
            store: try? StoreIdentifier(store), settings: settings,
            seed: seed,
            at: ClockReading(wall: Int64(bounded: wall), uptime: Int64(bounded: uptime), boot: boot)
        )
        driver.engine.notifiesOwnWrites = try event.boolean("ownWrites") ?? false
        driver.engine.keepsRedoLog = try event.boolean("redoLog") ?? false
        if let policies = try event.fields("policies") {
            for (name, letter) in try policies.strings() {
                try setPolicy(letter.string, of: name.string)
            }
        }
    }

    func reading(_ wall: Double, _ uptime: Double) -> ClockReading {
        ClockReading(wall: Int64(bounded: wall), uptime: Int64(bounded: uptime), boot: boot)
    }

    // MARK: - Events

    /// - Returns: What to do now.
    func handle(
        _ event: StoredFields, at now: ClockReading
    ) throws(StoredFieldError) -> PropertyListValue {
        steps = []
        switch try event.word("do") {
        case "values": return .fields(["values": .entries(driver.engine.values)])
        case "state": return state
        case "status": return status
        case "keys": return keys
        case "refused": return try refused(event)
        case "waiting":
            return .fields(["entries": .rows(driver.engine.waitingEntries)])
        case "start", "wake": break
        case "boot": boot = StableHash(try event.text("boot")).value
        case "answer", "event", "progress", "end", "fail": try hear(event, at: now)
        case "sync":
            trips[driver.engine.requestSync(at: now)] = try event.number("id")
        case "redo": driver.engine.redo(try event.rows("entries"), at: now)
        case "ask": try ask(event)
        case "policy": try setPolicy(event.string("policy"), of: event.text("key"))
        case "decided":
            let number = try event.number("conflict")
            guard let value = event["value"] else { throw .missing("value") }
            if let conflict = conflicts.removeValue(forKey: number) {
                driver.engine.decide(conflict, as: value)
            } else {
                decide(number, as: value)
            }
        case let word:
            guard let event = try Driver.Event(word, event) else { throw .otherType("do") }
            driver.handle(event, at: now)
            if case .engine(.hurry) = event { watch.hurry(at: now) }
        }
        if watch.look(at: driver, at: now) { _ = driver.engine.requestSync(at: now) }
        run(at: now)
        if watch.seizes(driver) { add("seize") }
        let wake = conflicts.isEmpty ? [driver.nextWake, watch.askAt].compactMap { $0 }.min() : nil
        return .fields(["steps": .array(steps), "wake": wake.map { .integer($0) }])
    }

    private func setPolicy(_ letter: String?, of name: String) throws(StoredFieldError) {
        guard let key = try? Key(name) else { throw .otherType("key") }
        let policy = letter?.unicodeScalars.first.flatMap { MergePolicy(rawValue: $0) }
        guard (policy == nil) == (letter == nil) else { throw .otherType("policy") }
        // Of a register, the shell calls the app's rule: ``Driver/Step/decide``. The engine calls this
        // one for the past only.
        let resolver: Resolver = { decisions.value(PastConflict(key: key, earlier: $0, later: $1)) }
        driver.engine.setPolicy(policy, resolver: resolver, for: key)
    }

    /// - Returns: The refusal, or what has changed.
    func write(
        _ event: StoredFields, at now: ClockReading
    ) throws(StoredFieldError) -> PropertyListValue {
        var changes: [Key: Content] = [:]
        var operations: [Key: MergeOperation] = [:]
        for write in try event.array("writes") ?? [] {
            let write = try StoredFields(write)
            let key: Key
            let name = try write.text("key")
            do throws(KeyError) { key = try Key(name) } catch {
                return .fields(["error": .string("key"), "detail": .string(error.description)])
            }
            guard let letter = try write.string("policy")?.unicodeScalars.first else {
                changes[key] = write["value"].map(Content.value) ?? .deleted
                continue
            }
            guard let policy = MergePolicy(rawValue: letter) else { throw .otherType("policy") }
            operations[key] = MergeOperation(policy, from: write["base"], to: write["value"])
        }
        do throws(LimitViolation) {
            switch try? event.word("how") {
            case "parts": try driver.engine.writeInParts(changes, at: now)
            case "revert": try driver.engine.writeInParts(changes, reverts: true, at: now)
            default: try driver.engine.write(changes, merging: operations, at: now)
            }
            let own = driver.engine.notices.takeOwnWrites()
            let log = driver.engine.takeRedoLog()
            return .fields([
                "changed": own.map { .keys($0) }, "entries": log.isEmpty ? nil : .rows(log),
            ])
        } catch {
            return .fields(["error": .string(error.code), "detail": .string(error.description)])
        }
    }

    // MARK: - Steps

    /// The app's own rule comes before anything else, so that a notice tells what it has made.
    private func run(at now: ClockReading) {
        takeConflicts()
        while conflicts.isEmpty, let step = driver.next(at: now) {
            switch step {
            case .decide: takeConflicts()
            case .effect(let effect): perform(effect, at: now)
            case .read(let version): add("read", ["after": .integer(version)])
            case .readAccount: add("readAccount")
            case .noteSealed(let account): add("noteSealed", ["account": .string(account)])
            case .connect(let account, let device, let generation):
                (requests.account, requests.device) = (account, device)
                requests.generation = generation
                requests.proof = driver.keyring?.proof(of: generation)
            case .open(let folder): add("open", ["folder": .string(folder)])
            case .release: add("release")
            case .use(let file): add("use", ["file": .integer(Int64(file))])
            case .synchronized(let isSaved): add("synchronized", ["isSaved": .boolean(isSaved)])
            case .report(let text, _): add("report", ["detail": .string(text)])
            case .close: add("close")
            }
        }
    }

    func add(_ word: String, _ fields: [ExactString: PropertyListValue?] = [:]) {
        steps.append(.word(word, fields))
    }

    private func takeConflicts() {
        while let conflict = driver.engine.takeConflict() {
            conflictsTaken += 1
            conflicts[conflictsTaken] = conflict
            addDecide(conflictsTaken, conflict.key, conflict.values)
        }
    }

    func addDecide(_ number: Int64, _ key: Key, _ values: [ConcurrentValue]) {
        let values = values.map { value in
            PropertyListValue.fields([
                "value": value.value,
                "milliseconds": .integer(value.stamp.timestamp.milliseconds),
            ])
        }
        add(
            "decide",
            [
                "conflict": .integer(number), "key": .string(key.name),
                "values": .array(values),
            ])
    }

    private func perform(_ effect: SyncEngine.Effect, at now: ClockReading) {
        switch effect {
        case .save(let batch): add("save", batch.fields)
        case .notify(let notice):
            add(
                "notify",
                [
                    "reason": .string(notice.reason.word), "keys": .keys(notice.keys),
                ])
        case .finishSync(let number, let failure):
            // The engine's own are nobody's.
            guard let id = trips.removeValue(forKey: number) else { return }
            let status = driver.status
            let isHeldUp = failure?.kind == .unreachable && status.isHeldUp
            add(
                "synced",
                [
                    "id": .integer(id),
                    "error": failure.map {
                        .string(status.isLocked ? LinkStatus.lockedReason : $0.detail)
                    },
                    "code": failure.map {
                        .string(status.isLocked ? "locked" : isHeldUp ? "heldUp" : $0.word)
                    },
                    "refused": failure.map { .keys($0.refusedKeys) },
                ])
        case .listen, .hangUp, .push, .pull: send(effect, at: now)
        }
    }

    // MARK: - What it shows

    /// For the harness of conformance.
    private var state: PropertyListValue {
        let contents = driver.engine.contents
        let withParts = Set(contents.keys.filter { $0.isPart }.map { $0.whole })
        let records = contents.filter { withParts.contains($0.key.whole) }
        return .fields([
            "values": .entries(driver.engine.values),
            "records": .array(
                records.inOrder { $0.key < $1.key }.map { .entry($0.key, $0.value) }),
            "waiting": .array(driver.engine.ownRecords.inOrder().map { .entry($0, nil) }),
            "cursor": driver.engine.meta.cursor.map { .string($0.text) },
            "isConnected": .boolean(
                [.connected, .polling].contains(driver.engine.status.link.state)),
            "isNotifying": .boolean(!driver.engine.notices.isEmpty),
        ])
    }
}
