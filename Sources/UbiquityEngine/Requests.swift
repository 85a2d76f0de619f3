// SPDX-License-Identifier: Apache-2.0

/// The requests that are under way, and what they are for.
struct Requests {
    enum Purpose {
        case stream(Int)
        case push(Int)
        case changes(ofPull: Int)
        case config(ofPull: Int)
        case question(Question)
    }

    /// The two answers of a pull that also asks for the configuration.
    struct Pull {
        var changes: ChangeSet?
        var config: ServerConfig?
        var wantsConfig: Bool
    }

    private let store: String
    var account: SignedInAccount?
    var device = DeviceID.unassigned
    /// The number of the account's key that requests name; 0 for none.
    var generation: UInt32 = 0
    /// Shows that the device has that key, where it asks for changes; nil without the account's key.
    var proof: Bytes32?
    var all: [Int: Purpose] = [:]
    var pulls: [Int: Pull] = [:]
    private var last = 0

    init(store: String) { self.store = store }

    var server: String { account?.server ?? "" }

    /// - Returns: The words of the request.
    mutating func begin(
        _ purpose: Purpose, _ resource: String = "changes", query: String = "",
        body: [UInt8]? = nil
    ) -> [ExactString: PropertyListValue?] {
        last += 1
        all[last] = purpose
        let query = body == nil ? Self.naming(generation, in: query) : query
        var (path, accept) = (Self.path(of: store, resource) + query, "application/json")
        var asksForChanges = false
        switch purpose {
        case .config: path = "/v1/config"
        case .stream: (accept, asksForChanges) = ("text/event-stream", true)
        case .changes: asksForChanges = true
        case .push, .question: break
        }
        var headers: [ExactString: PropertyListValue] = ["Accept": .string(accept)]
        if let account { headers["Authorization"] = .string("Bearer \(account.credential)") }
        if body != nil { headers["Content-Type"] = "application/json" }
        if asksForChanges, let proof {
            let text = String(decoding: Base64.encode(proof.bytes), as: UTF8.self)
            headers["Ubiquity-Key-Proof"] = .string(ExactString(text))
        }
        return [
            "id": .integer(Int64(last)), "method": .string(body == nil ? "GET" : "POST"),
            "server": .string(server), "path": .string(path), "headers": .dictionary(headers),
            "body": body.map { .data($0) },
        ]
    }

    /// The words of a stream's request, with what a pool must know to make another one.
    mutating func begin(
        stream number: Int, since cursor: Cursor?, isSaved: Bool
    ) -> [ExactString: PropertyListValue?] {
        var words = begin(.stream(number), query: Self.query(cursor, isSaved))
        words["stream"] = .fields([
            "store": .string(store), "since": cursor.map { .string($0.text) },
            "saved": .boolean(isSaved),
            "generation": generation == 0 ? nil : .integer(Int64(generation)),
        ])
        return words
    }

    static func path(of store: String, _ resource: String = "changes") -> String {
        "/v1/stores/\(store)/\(resource)"
    }

    /// A query that also names the key which the device has.
    static func naming(_ generation: UInt32, in query: String) -> String {
        guard generation > 0 else { return query }
        return query + (query.isEmpty ? "?" : "&") + "generation=\(generation)"
    }

    /// A cursor's characters need no escapes, except for a server that is not ours.
    static func query(_ cursor: Cursor?, _ isSaved: Bool) -> String {
        cursor.map { "?since=\($0.text.escaped)" + (isSaved ? "" : "&saved=false") } ?? ""
    }
}

extension PropertyListValue: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self = .string(text) }
}

extension Engine {
    func send(_ effect: SyncEngine.Effect, at now: ClockReading) {
        switch effect {
        case .listen(let number, let cursor, let isSaved):
            add("request", requests.begin(stream: number, since: cursor, isSaved: isSaved))
        case .hangUp(let number):
            for (id, purpose) in requests.all {
                guard case .stream(number) = purpose else { continue }
                requests.all[id] = nil
                steps.append(.cancel(id))
            }
        case .push(let number, let push):
            var json = JSONText()
            json.add(push, by: requests.device, at: now)
            add("request", requests.begin(.push(number), body: json.bytes))
        case .pull(let number, let cursor, let isSaved, let withConfig):
            requests.pulls[number] = Requests.Pull(wantsConfig: withConfig)
            add(
                "request",
                requests.begin(.changes(ofPull: number), query: Requests.query(cursor, isSaved)))
            if withConfig { add("request", requests.begin(.config(ofPull: number))) }
        case .save, .notify, .finishSync: break
        }
    }

    // MARK: - Answers

    /// Takes what came of a request. Nothing of one that is not wanted any more.
    func hear(_ event: StoredFields, at now: ClockReading) throws(StoredFieldError) {
        let id = Int(clamping: try event.number("request"))
        guard let purpose = requests.all[id] else { return }
        do throws(WireFault) {
            let failure = try LinkFailure.failure(in: event, server: requests.server)
            if case .stream(let number) = purpose {
                return try hear(event, failure, on: number, of: id, at: now)
            }
            requests.all[id] = nil
            if let failure { return fail(purpose, failure, at: now) }
            let body = (try? event.data("body")) ?? []
            try answered(purpose, body, at: now)
        } catch {
            requests.all[id] = nil
            let server = requests.server
            if case .stream = purpose { steps.append(.cancel(id)) }
            fail(
                purpose,
                LinkFailure(
                    .unreachable, "the answer from \(server) cannot be read: \(error.description)"),
                at: now)
        }
    }

    private func fail(
        _ purpose: Requests.Purpose, _ failure: LinkFailure?, at now: ClockReading
    ) {
        let other = LinkFailure(.unreachable, "the server at \(requests.server) ended the request")
        switch purpose {
        case .stream(let number):
            driver.handle(.engine(.streamEnded(number, failure)), at: now)
        case .push(let number):
            driver.handle(.engine(.pushFailed(number, failure ?? other)), at: now)
        case .changes(let number), .config(let number):
            // The other answer, or its failure, has been too late or will be.
            guard requests.pulls.removeValue(forKey: number) != nil else { return }
            driver.handle(.engine(.pullFailed(number, failure ?? other)), at: now)
        case .question(let question): answer(question.id, failure ?? other)
        }
    }

    private func answered(
        _ purpose: Requests.Purpose, _ body: [UInt8], at now: ClockReading
    ) throws(WireFault) {
        let bounds = driver.engine.intake.message
        switch purpose {
        case .stream: break
        case .push(let number):
            let answer = try PushAnswer(WireFields(body, within: bounds))
            driver.handle(.engine(.pushAnswered(number, answer)), at: now)
        case .changes(let number):
            let changes = try ChangeSet(WireFields(body, within: bounds))
            requests.pulls[number]?.changes = changes
            finishPull(number, at: now)
        case .config(let number):
            let config = try ServerConfig(WireFields(body, within: .small))
            requests.pulls[number]?.config = config
            finishPull(number, at: now)
        case .question(let question): try answered(question, body)
        }
    }

    private func finishPull(_ number: Int, at now: ClockReading) {
        guard let pull = requests.pulls[number], var changes = pull.changes,
            !pull.wantsConfig || pull.config != nil
        else { return }
        requests.pulls[number] = nil
        changes.config = pull.config
        driver.handle(.engine(.pulled(number, changes)), at: now)
    }

    private func hear(
        _ event: StoredFields, _ failure: LinkFailure?, on stream: Int, of id: Int,
        at now: ClockReading
    ) throws(WireFault) {
        let word = (try? event.word("do")) ?? ""
        if failure != nil || word == "end" {
            requests.all[id] = nil
            return driver.handle(.engine(.streamEnded(stream, failure)), at: now)
        }
        if word == "progress" {
            return driver.handle(.engine(.streamReceived(stream, .progress)), at: now)
        }
        guard word == "event", let name = try? event.word("name") else { return }
        let data = (try? event.data("data")) ?? []
        guard
            let message = try StreamMessage(name, data, within: driver.engine.intake.message)
        else { return }
        if case .ready(_, let config) = message { steps.append(.patience(of: id, config)) }
        driver.handle(.engine(.streamReceived(stream, message)), at: now)
    }
}

extension LinkFailure {
    /// What an event says of a request. Nil for a success, and for what is not an answer.
    static func failure(
        in event: StoredFields, server: String
    ) throws(WireFault) -> LinkFailure? {
        do throws(StoredFieldError) {
            switch try event.word("do") {
            case "fail":
                let kind: Kind =
                    switch try event.word("why") {
                    case "timeout": .timedOut
                    case "tooManyStreams": .tooManyStreams(retryAfterMilliseconds: 30_000)
                    default: .unreachable
                    }
                return LinkFailure(
                    kind, try event.string("detail") ?? "no server answers at \(server)")
            case "answer":
                let status = try event.number("status")
                if status == 200 { return nil }
                return LinkFailure(
                    status: Int(clamping: status),
                    headers: try event.fields("headers")?.strings() ?? [:],
                    body: try event.data("body") ?? [], server: server)
            default: return nil
            }
        } catch { throw WireFault(error.description) }
    }
}

extension String {
    /// As a part of a query.
    var escaped: String {
        var text = ""
        for byte in utf8 {
            if byte.isAlphanumeric || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16)
                text += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return text
    }
}
