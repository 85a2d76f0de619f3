// SPDX-License-Identifier: Apache-2.0

/// The streams of a process's stores of one account: what happened to ``SharedStream``, as words of its
/// shell, and what to do. Events of a server cross as they came; the engine of their store reads them.
struct StreamPool {
    private var shared = SharedStream()
    private let server: String
    private let headers: [ExactString: PropertyListValue]
    private var connections: [Connection] = []
    private var steps: [PropertyListValue] = []
    /// What listeners are told of the present event, if that is not the event itself.
    private var told: PropertyListValue?

    private struct Connection {
        var number: Int
        /// The only store; nil for several.
        var single: StoreIdentifier?
    }

    init(_ event: StoredFields) throws(StoredFieldError) {
        server = try event.text("server")
        guard case .dictionary(let headers)? = event["headers"] else { throw .missing("headers") }
        self.headers = headers
    }

    /// - Returns: What to do now.
    mutating func handle(
        _ event: StoredFields, at now: Int64
    ) throws(StoredFieldError) -> PropertyListValue {
        (steps, told) = ([], nil)
        switch try event.word("do") {
        case "pool", "wake": break
        case "listen":
            let since = try event.string("since")
            shared.listen(
                try listener(in: event), since: since.flatMap { Cursor($0) },
                isSaved: try event.boolean("saved") ?? true,
                generation: try event.integer("generation") ?? 0, at: now)
        case "hangUp": shared.hangUp(try listener(in: event), at: now)
        default: try hear(event, at: now)
        }
        while let action = shared.next(at: now) { perform(action) }
        return .fields(["steps": .array(steps), "wake": shared.wake.map { .integer($0) }])
    }

    private func listener(
        in event: StoredFields
    ) throws(StoredFieldError) -> SharedStream.Listener {
        let name = try event.text("store")
        guard let store = try? StoreIdentifier(name) else { throw .otherType("store") }
        return SharedStream.Listener(Int(clamping: try event.number("listener")), to: store)
    }

    // MARK: - Connections

    private mutating func hear(_ event: StoredFields, at now: Int64) throws(StoredFieldError) {
        let number = Int(clamping: try event.number("request"))
        guard let connection = connections.first(where: { $0.number == number }) else { return }
        do throws(WireFault) {
            if let failure = try LinkFailure.failure(in: event, server: server) {
                end(number, failure, at: now)
            } else {
                try hear(event, of: connection.single, on: number, at: now)
            }
        } catch {
            let detail = "the answer from \(server) cannot be read: \(error.description)"
            told = .word("fail", ["why": "unreachable", "detail": .string(detail)])
            add(.cancel(number))
            end(number, LinkFailure(.unreachable, detail), at: now)
        }
    }

    private mutating func hear(
        _ event: StoredFields, of single: StoreIdentifier?, on number: Int, at now: Int64
    ) throws(WireFault) {
        switch try? event.word("do") {
        case "end": return end(number, nil, at: now)
        case "progress": shared.progressed(on: number, at: now)
        case "event":
            let data = (try? event.data("data")) ?? []
            try take((try? event.word("name")) ?? "", data, of: single, on: number, at: now)
        default: return
        }
        shared.setPartial((try? event.boolean("isPartial")) ?? false, on: number)
    }

    private mutating func take(
        _ name: ExactString, _ data: [UInt8], of single: StoreIdentifier?, on number: Int,
        at now: Int64
    ) throws(WireFault) {
        guard ["changes", "ready", "resync", "ended"].contains(name) else { return }
        // Its records are for the engine of its store.
        let wire = try WireFields(data.withoutLists, within: .small)
        let named = try wire.text("store")
        guard let store = (try? StoreIdentifier(named)) ?? single, single == nil || store == single
        else {
            throw WireFault("an event does not say of which store it is")
        }
        switch name {
        case "ended": return ended(store, wire, data, on: number, at: now)
        case "resync": shared.received(.resync, for: store, on: number, at: now)
        case "ready":
            let message = try StreamMessage.ready(wire)
            if case .ready(_, let config) = message { add(.patience(of: number, config)) }
            shared.received(message, for: store, on: number, at: now)
        default:
            let changes = ChangeSet(
                records: [], cursor: try Cursor(wire), serverMilliseconds: 0,
                isWhole: try wire.flag("whole"))
            shared.received(.changes(changes), for: store, on: number, at: now)
        }
    }

    /// The problem is what a stream of this store alone would have been refused with.
    private mutating func ended(
        _ store: StoreIdentifier, _ problem: WireFields, _ data: [UInt8], on number: Int,
        at now: Int64
    ) {
        let status = Int(clamping: (try? problem.number("status")) ?? 0)
        let wait = (try? problem.number("retryAfterSeconds")) ?? 0
        let headers: [ExactString: ExactString] = wait > 0 ? ["Retry-After": "\(wait)"] : [:]
        told = .word(
            "answer",
            [
                "status": .integer(Int64(status)), "body": .data(data),
                "headers": .fields(wait > 0 ? ["Retry-After": .string("\(wait)")] : [:]),
            ])
        let failure = LinkFailure(status: status, headers: headers, body: data, server: server)
        shared.ended(store, on: number, failure, at: now)
    }

    private mutating func end(_ number: Int, _ failure: LinkFailure?, at now: Int64) {
        connections.removeAll { $0.number == number }
        shared.ended(number, failure, at: now)
    }

    // MARK: - Steps

    private mutating func add(_ step: PropertyListValue) { steps.append(step) }

    private mutating func perform(_ action: SharedStream.Action) {
        switch action {
        case .open(let number, let places): open(number, places)
        case .close(let number):
            connections.removeAll { $0.number == number }
            add(.cancel(number))
        case .deliver(let message, let listener):
            let event: PropertyListValue? =
                switch message {
                case .progress: .word("progress")
                case .resync: .word("event", ["name": "resync", "data": .data([])])
                case .changes, .ready: nil
                }
            add(.word("deliver", ["listener": .integer(Int64(listener.number)), "event": event]))
        case .end(let listener, _):
            add(.word("end", ["listener": .integer(Int64(listener.number)), "event": told]))
        }
    }

    /// A single store is asked for as its engine does, which every server knows.
    private mutating func open(_ number: Int, _ places: [SharedStream.Place]) {
        let single = places.count == 1 ? places[0].store : nil
        connections.append(Connection(number: number, single: single))
        var (headers, path) = (headers, "/v1/changes")
        var body: [UInt8]?
        if let single {
            path =
                Requests.path(of: single.string)
                + Requests.naming(
                    places[0].generation, in: Requests.query(places[0].since, places[0].isSaved))
        } else {
            var json = JSONText()
            json.add(places)
            body = json.bytes
            headers["Content-Type"] = "application/json"
        }
        add(
            .word(
                "request",
                [
                    "id": .integer(Int64(number)), "method": .string(body == nil ? "GET" : "POST"),
                    "server": .string(server), "path": .string(path),
                    "headers": .dictionary(headers), "body": body.map { .data($0) },
                ]))
    }
}

extension [UInt8] {
    /// JSON in which each list is empty: what is in them may be long.
    fileprivate var withoutLists: [UInt8] {
        var kept: [UInt8] = []
        var (depth, isText, isEscaped) = (0, false, false)
        for byte in self {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                isText.toggle()
            } else if isText {
                isEscaped = byte == UInt8(ascii: "\\")
            } else if byte == UInt8(ascii: "[") {
                if depth == 0 { kept.append(byte) }
                depth += 1
            } else if byte == UInt8(ascii: "]") {
                depth -= 1
            }
            if depth == 0 { kept.append(byte) }
        }
        return kept
    }
}
