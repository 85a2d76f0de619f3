// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquitySimulation
import UbiquityWire

/// The requests of the client, answered by the virtual server through the virtual network.
extension ClientProcess {
    func cancel(_ id: Int) {
        requests.remove(id)
        streams.removeValue(forKey: id)?.stream.hangUp()
    }

    func send(_ request: ClientAnswer.Request) {
        guard requests.insert(request.id).inserted else {
            return world.complain("device \(device.number) has two requests \(request.id)")
        }
        if request.path == "/v1/config", request.method == "GET" { return config(request) }
        guard request.path == "/v1/stores/\(Self.storeName)/changes" else {
            return complain(request, "there is nothing at this address")
        }
        guard request.headers["authorization"] == "Bearer \(credential)" else {
            return complain(request, "it does not have the device's credential")
        }
        switch request.method {
        case "POST": push(request)
        case "GET": read(request)
        default: complain(request, "it has no such method")
        }
    }

    private func complain(_ request: ClientAnswer.Request, _ why: String) {
        world.complain(
            "device \(device.number) sent \(request.method) \(request.path), and \(why)")
    }

    // MARK: - Pushes

    private func push(_ request: ClientAnswer.Request) {
        guard request.headers["content-type"].flatMap(WireFormat.init(mediaType:)) == .json else {
            return complain(request, "Content-Type is not application/json")
        }
        let push: Push
        do {
            push = try Push(WireFormat.json.decode(WirePush.self, from: request.body), author: name)
        } catch {
            return complain(request, "\(error): \(String(decoding: request.body, as: UTF8.self))")
        }
        let opened = opened(push)
        world.note(
            .pushes(
                process: number, opened, unsaved: unsaved(opened), readable: readable(push)))
        let limits = world.server.limits
        world.network.request(on: device, bytes: push.virtualBytes) {
            [world, storeReference, name] reply in
            // A transaction that is too large alone passes, or it would wait for ever.
            guard push.bytes <= limits.pushBytesMax || push.transactions.count == 1 else {
                return reply(.failure(LinkFailure(.tooLarge, "Send less at once.")))
            }
            world.server.chosenNode.push(push, to: storeReference, by: name, reply: reply)
        } done: { [self] (result: Result<PushAnswer, LinkFailure>) in
            heard(request.id, result) { [self] answer in
                answered(request.id, WireFormat.json.encode(WirePushAnswer(answer)), .answer) {
                    [self] _, _ in
                    noteRefused(opened, answer)
                }
            }
        }
    }

    /// The push as the apps wrote it.
    private func opened(_ push: Push) -> Push {
        guard let sealer = world.keyring(of: ConformanceWorld.account)?.sealer(of: Self.store)
        else { return push }
        var push = push
        push.transactions = push.transactions.map { transaction in
            transaction.mapContents { record in
                var elements = Int.max
                guard record.content.isSealed,
                    case .opened(let opened) = sealer.open(
                        record, within: &elements)
                else { return record.content }
                return opened.content
            }
        }
        return push
    }

    /// The keys of writes that the server of a sealed account could read.
    private func readable(_ push: Push) -> Set<Key> {
        guard world.scenario.isSealed else { return [] }
        let writes = push.transactions.flatMap(\.writes)
        return Set(
            writes.filter { $0.content != .deleted && !$0.content.isSealed }.map(\.key))
    }

    private static let store: StoreIdentifier = {
        guard let store = try? StoreIdentifier(storeName) else {
            preconditionFailure("The store's name is not an identifier.")
        }
        return store
    }()

    /// A refused write is withdrawn, with what it had replaced here.
    private func noteRefused(_ push: Push, _ answer: PushAnswer) {
        var refused: [Record] = []
        for (transaction, result) in zip(push.transactions, answer.results) {
            switch result {
            case .refused: refused += transaction.writes
            case .committed(let results):
                refused += zip(transaction.writes, results).filter {
                    $0.1 == .olderThanCompacted && $0.0.content != .deleted
                }.map(\.0)
            }
        }
        guard !refused.isEmpty else { return }
        world.note(.withdrawn(disk: disk, refused))
        world.note(.changed(process: number, Set(refused.map(\.key.whole)), .answer))
    }

    // MARK: - Reads

    private func read(_ request: ClientAnswer.Request) {
        let text = request.headers["last-event-id"] ?? request.query["since"]
        let cursor = text.flatMap { Cursor($0) }
        if text != nil, cursor == nil { return complain(request, "its cursor is malformed") }
        let isSaved = cursor != nil && request.query["saved"] != "false"
        let generation = request.query["generation"].flatMap { UInt32($0) } ?? 0
        if request.headers["accept"]?.hasPrefix("text/event-stream") == true {
            listen(request.id, since: cursor, isSaved, generation)
        } else {
            pull(request.id, since: cursor, isSaved, generation)
        }
    }

    private func pull(_ id: Int, since cursor: Cursor?, _ isSaved: Bool, _ generation: UInt32) {
        world.note(.pulls(process: number))
        world.network.request(on: device, answerBytes: \.virtualBytes) {
            [world, storeReference, name]
            (reply: @escaping (Result<ChangeSet, LinkFailure>) -> Void) in
            world.server.chosenNode.pull(
                storeReference, since: cursor, isSaved: isSaved, withConfig: false, by: name,
                generation: generation, reply: reply)
        } done: { [self] result in
            heard(id, result) { [self] changes in
                answered(
                    id, WireFormat.json.encode(WireChanges(changes)), .server, receiving: changes)
                pulled = state.cursor == changes.cursor ? nil : changes
            }
        }
    }

    private func config(_ request: ClientAnswer.Request) {
        world.network.request(on: device) {
            [world, storeReference, name]
            (reply: @escaping (Result<ChangeSet, LinkFailure>) -> Void) in
            world.server.chosenNode.pull(
                storeReference, since: nil, isSaved: false, withConfig: true, by: name,
                generation: world.keyring(of: ConformanceWorld.account)?.current ?? 0,
                reply: reply)
        } done: { [self] result in
            heard(request.id, result) { [self] changes in
                guard let config = changes.config else {
                    preconditionFailure("the server was asked for its configuration")
                }
                answered(
                    request.id, WireFormat.json.encode(WireConfig(config)), .server,
                    receiving: pulled)
                pulled = nil
            }
        }
    }

    // MARK: - Answers

    private func heard<Answer>(
        _ id: Int, _ result: Result<Answer, LinkFailure>, _ take: @escaping (Answer) -> Void
    ) {
        whenRunning { [self] in
            switch result {
            case .success(let answer): take(answer)
            case .failure(let failure): failed(id, failure)
            }
        }
    }

    private func answered(
        _ id: Int, _ body: [UInt8], _ cause: Observation.Cause, receiving changes: ChangeSet? = nil,
        _ note: (ClientAnswer.State, ClientAnswer) -> Void = { _, _ in }
    ) {
        guard requests.remove(id) != nil else { return }
        let answer = HTTPAnswer(
            status: 200, headers: ["Content-Type": WireFormat.json.rawValue], body: body)
        tell(.answer(request: id, answer), cause, receiving: changes, note)
    }

    private func failed(_ id: Int, _ failure: LinkFailure) {
        guard requests.remove(id) != nil else { return }
        switch failure.kind {
        case .unreachable: tell(.fail(request: id, isTimeout: false), .server)
        case .timedOut: tell(.fail(request: id, isTimeout: true), .server)
        default: tell(.answer(request: id, HTTPAnswer(failure, world.chance)), .server)
        }
    }

    // MARK: - Streams

    private func listen(
        _ id: Int, since cursor: Cursor?, _ isSaved: Bool, _ generation: UInt32
    ) {
        world.note(.opensStream(process: number))
        let stream = ClientStream(id: id, process: self, generation: generation)
        streams[id] = stream
        world.network.request(on: device) {
            [world] (reply: (Result<Void, LinkFailure>) -> Void) in
            world.server.open(stream.stream, since: cursor, isSaved: isSaved)
            reply(.success(()))
        } done: { result in
            if case .failure(let failure) = result { stream.stream.breakOff(failure) }
        }
    }

    func received(_ message: StreamMessage, on id: Int) {
        guard let stream = streams[id] else { return }
        if !stream.hasBegun {
            stream.hasBegun = true
            let head = HTTPAnswer(
                status: 200, headers: ["Content-Type": "text/event-stream"], body: [])
            tell(.answer(request: id, head), .server)
        }
        guard streams[id] != nil else { return }
        switch message {
        case .progress: break
        case .changes(let changes):
            let data = WireFormat.json.encode(WireChanges(changes))
            tell(.event(request: id, name: "changes", data: data), .server, receiving: changes)
        case .ready(let cursor, let config):
            var ready = WireReady()
            ready.cursor = cursor.text
            ready.config = WireConfig(config)
            tell(
                .event(request: id, name: "ready", data: WireFormat.json.encode(ready)), .server)
        case .resync: tell(.event(request: id, name: "resync", data: Array("{}".utf8)), .server)
        }
    }

    func streamEnded(_ id: Int, _ failure: LinkFailure?) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        guard let failure else {
            requests.remove(id)
            return tell(.end(request: id), .server)
        }
        guard stream.hasBegun else { return failed(id, failure) }
        requests.remove(id)
        tell(.fail(request: id, isTimeout: failure.kind == .timedOut), .server)
    }
}

/// One stream of the client, by the number of its request.
final class ClientStream: VirtualListener {
    private let id: Int
    /// Released with the streams of the process.
    private let process: ClientProcess
    private let generation: UInt32
    /// Whether the head of the answer has come.
    var hasBegun = false
    private(set) lazy var stream = VirtualStream(
        number: id, listener: self, store: process.storeReference, device: process.name,
        world: process.world, generation: generation)

    /// - Parameter generation: The number of the account's key that the client has named.
    init(id: Int, process: ClientProcess, generation: UInt32) {
        (self.id, self.process, self.generation) = (id, process, generation)
    }

    var line: any VirtualLine { process.device }

    func received(_ message: StreamMessage, on stream: Int) {
        process.whenRunning { [process] in process.received(message, on: stream) }
    }

    func streamEnded(_ stream: Int, _ failure: LinkFailure?) {
        process.whenRunning { [process] in process.streamEnded(stream, failure) }
    }
}

extension HTTPAnswer {
    /// The answer for a failure.
    /// - Parameter chance: Of two answers that mean the same, either may come.
    init(_ failure: LinkFailure, _ chance: Chance) {
        var code = ProblemCode.malformed
        var wait: Int64?
        var problem = WireProblem()
        switch failure.kind {
        case .unauthorized: code = .credentialInvalid
        case .tooLarge: code = .bodyTooLarge
        case .cursorGone(let isOtherHistory):
            code = isOtherHistory ? .cursorOtherHistory : .cursorCompacted
        case .clockAhead(let milliseconds):
            code = .clockAhead
            problem.serverMilliseconds = UInt64(clamping: milliseconds)
        case .busy(let milliseconds):
            (code, wait) = (chance.coin() ? .tooManyRequests : .unavailable, milliseconds)
        case .tooManyStreams(let milliseconds): (code, wait) = (.tooManyStreams, milliseconds)
        case .sealed(let generation):
            code = .sealed
            problem.generation = generation
        case .refused, .unreachable, .timedOut: code = .malformed
        }
        problem.type = "urn:ubiquity:problem:\(code.rawValue)"
        problem.status = UInt32(code.status)
        problem.code = code.rawValue
        problem.detail = failure.detail
        self.init(
            status: code.status, headers: ["Content-Type": "application/problem+json"],
            body: WireFormat.json.encode(problem))
        if let wait { headers["Retry-After"] = "\((wait + 999) / 1_000)" }
    }
}
