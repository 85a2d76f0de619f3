// SPDX-License-Identifier: Apache-2.0

/// What an app asks of a store's past, which only the server has.
struct Question {
    /// The app's number.
    let id: Int64
    var subject: Subject

    enum Subject {
        /// Of one key, page by page, with what this device alone knows: refused writes.
        case history(HistoryReading, of: Key, max: Int, refused: [KeyVersion])
        /// The store as it was at a time; nil while the server is asked.
        case snapshot(StoreSnapshot?)
    }
}

/// Two values of the past that only the app's own rule can merge.
struct PastConflict: Hashable {
    let key: Key
    let earlier: ConcurrentValue
    let later: ConcurrentValue
}

/// What the app's own rule has made of values of the past. The shell calls it, between two attempts to
/// answer a question.
struct Decisions {
    var made: [PastConflict: PropertyListValue] = [:]
    /// With the values of now. A set would add its own functions to the module.
    private var missing: [PastConflict: PropertyListValue] = [:]

    mutating func value(_ conflict: PastConflict) -> PropertyListValue {
        if let value = made[conflict] { return value }
        missing[conflict] = conflict.later.value
        return conflict.later.value
    }

    mutating func takeMissing() -> [PastConflict] {
        defer { missing = [:] }
        return missing.map { $0.key }
    }
}

/// Of the only store of this instance, because the engine's rules can be called anywhere.
nonisolated(unsafe) var decisions = Decisions()

extension Engine {
    func ask(_ event: StoredFields) throws(StoredFieldError) {
        let id = try event.number("id")
        guard driver.engine.isSignedIn, requests.account != nil else {
            return answer(
                id,
                LinkFailure(
                    .unauthorized, "the history is on the server, and this device is not signed in")
            )
        }
        guard let name = try event.string("key") else {
            let milliseconds = min(max(try event.number("milliseconds"), 0), 1 << 48 - 1)
            return begin(
                Question(id: id, subject: .snapshot(nil)), "snapshot",
                "?milliseconds=\(milliseconds)")
        }
        guard let key = try? Key(name) else { throw .otherType("key") }
        let max = Int(clamping: min(Swift.max(try event.number("max"), 1), 100_000))
        var refused: [KeyVersion] = []
        for row in try event.array("refused") ?? [] {
            let write = try RefusedWrite(row: row)
            guard write.record.key.name == key.name else { continue }
            KeyVersion(write.record, .refused(write.refusal)).map { refused.append($0) }
        }
        let reading = HistoryReading(of: key, newest: max)
        read(Question(id: id, subject: .history(reading, of: key, max: max, refused: refused)))
    }

    /// Asks for the next page.
    private func read(_ question: Question, from place: String? = nil) {
        guard case .history(_, let key, let max, _) = question.subject else { return }
        let limit = min(max, HistoryReading.pageMax)
        begin(
            question, "history",
            "?key=\(key.string.escaped)&limit=\(limit)"
                + (place.map { "&before=\($0.escaped)" } ?? ""))
    }

    private func begin(_ question: Question, _ resource: String, _ query: String) {
        add("request", requests.begin(.question(question), resource, query: query))
    }

    /// Takes an answer, or a part of it.
    func answered(_ question: Question, _ body: [UInt8]) throws(WireFault) {
        let wire = try WireFields(body, within: IntakeLimits(nil).message)
        var question = question
        switch question.subject {
        case .snapshot:
            let snapshot = try StoreSnapshot(wire)
            do throws(LinkFailure) {
                question.subject = .snapshot(try driver.engine.opened(snapshot))
            } catch { return answer(question.id, error) }
        case .history(var reading, let key, let max, let refused):
            let page: HistoryPage
            let sealed = try HistoryPage(wire)
            do throws(LinkFailure) { page = try driver.engine.opened(sealed) } catch {
                return answer(question.id, error)
            }
            let next: String?
            do throws(HistoryTooLong) { next = try reading.take(page) } catch {
                return answer(question.id, LinkFailure(.refused, error.description))
            }
            question.subject = .history(reading, of: key, max: max, refused: refused)
            if let next { return read(question, from: next) }
        }
        conclude(question)
    }

    /// Answers, unless the app's rule must make values of the past first.
    private func conclude(_ question: Question) {
        let answer = answer(to: question)
        let missing = decisions.takeMissing()
        guard missing.isEmpty else {
            questions.append(question)
            for conflict in missing {
                conflictsTaken += 1
                pastConflicts[conflictsTaken] = conflict
                addDecide(conflictsTaken, conflict.key, [conflict.earlier, conflict.later])
            }
            return
        }
        add("answered", answer)
        if questions.isEmpty { decisions = Decisions() }
    }

    /// The app's rule has made a value of the past.
    func decide(_ number: Int64, as value: PropertyListValue) {
        guard let conflict = pastConflicts.removeValue(forKey: number) else { return }
        decisions.made[conflict] = value
        guard pastConflicts.isEmpty else { return }
        let waiting = questions
        questions = []
        for question in waiting { conclude(question) }
    }

    private func answer(to question: Question) -> [ExactString: PropertyListValue?] {
        var fields: [ExactString: PropertyListValue?] = ["id": .integer(question.id)]
        switch question.subject {
        case .snapshot(let snapshot):
            guard let snapshot else { break }
            let values = driver.engine.values(of: snapshot.records)
                .filter { !snapshot.forgottenKeys.contains($0.key) }
            fields["values"] = .some(.entries(values))
            fields["revision"] = .some(.integer(snapshot.revision))
            fields["forgottenKeys"] = .some(.keys(snapshot.forgottenKeys))
        case .history(let reading, let key, let max, let refused):
            let versions = KeyHistory(of: key, from: reading.versions)
                .versions(newest: max, driver.engine.resolver(of: key))
                .adding(own: driver.engine.ownVersions(of: key) + refused, newest: max)
            fields["versions"] = .some(.array(versions.map { $0.fields }))
        }
        return fields
    }

    /// There is no answer.
    func answer(_ id: Int64, _ failure: LinkFailure) {
        add(
            "answered",
            [
                "id": .integer(id), "error": .string(failure.detail),
                "code": .string(failure.word),
            ])
    }
}

extension KeyVersion {
    var fields: PropertyListValue {
        var reason: Refusal?
        let word: String
        switch outcome {
        case .waiting: word = "waiting"
        case .current: word = "current"
        case .replaced: word = "replaced"
        case .lost: word = "lost"
        case .refused(let refusal): (word, reason) = ("refused", refusal)
        case .gap: word = "gap"
        }
        return .fields([
            "key": .string(key.name), "value": value, "outcome": .string(word),
            "revision": came.map { .integer($0.revision) },
            "came": .integer(milliseconds),
            "milliseconds": .integer(stamp.timestamp.milliseconds),
            "device": .author(stamp.device),
            "code": reason.map { .string($0.code) }, "reason": reason.map { .string($0.detail) },
        ])
    }
}

// MARK: - In JSON

extension HistoryPage {
    fileprivate init(_ wire: WireFields) throws(WireFault) {
        var versions: [RecordVersion] = []
        for version in try wire.list("versions") {
            versions.append(try RecordVersion(WireFields(version)))
        }
        let next = try wire.text("next")
        self.init(
            versions: versions, next: next.isEmpty ? nil : next,
            serverMilliseconds: try wire.milliseconds("serverMilliseconds"))
    }
}

extension RecordVersion {
    fileprivate init(_ wire: WireFields) throws(WireFault) {
        guard let record = try wire.object("record") else {
            throw WireFault("a version has no record")
        }
        let outcome: Outcome
        if let ended = try wire.object("replaced") {
            outcome = .replaced(try Moment(ended), by: try Stamp(ended))
        } else if let ended = try wire.object("lost") {
            outcome = .lost(try Moment(ended), by: try Stamp(ended))
        } else if try wire.flag("current") {
            outcome = .current
        } else {
            throw WireFault("a version has no outcome")
        }
        let revision = Int64(clamping: try wire.number("revision"))
        let came = Moment(
            revision: revision, milliseconds: try wire.milliseconds("cameMilliseconds"))
        self.init(
            record: try Record(record), came: revision == 0 ? nil : came, outcome: outcome)
    }
}

extension RecordVersion.Moment {
    fileprivate init(_ ended: WireFields) throws(WireFault) {
        self.init(
            revision: Int64(clamping: try ended.number("revision")),
            milliseconds: try ended.milliseconds("milliseconds"))
    }
}

extension Stamp {
    /// Of what ended a version.
    fileprivate init(_ ended: WireFields) throws(WireFault) {
        guard let wire = try ended.object("by") else { throw WireFault("\"by\" is missing") }
        try self.init(time: wire)
    }
}

extension StoreSnapshot {
    fileprivate init(_ wire: WireFields) throws(WireFault) {
        var (records, forgotten): ([Record], Set<Key>) = ([], [])
        for record in try wire.list("records") { records.append(try Record(WireFields(record))) }
        for name in try wire.list("forgottenKeys") {
            guard case .string(let text) = name, let key = try? Key(text.string) else {
                throw WireFault("\"forgottenKeys\" has something else")
            }
            forgotten.insert(key)
        }
        self.init(
            records: records, revision: Int64(clamping: try wire.number("revision")),
            forgottenKeys: forgotten,
            serverMilliseconds: try wire.milliseconds("serverMilliseconds"))
    }
}
