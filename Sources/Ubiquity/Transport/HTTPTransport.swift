// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
package import UbiquityCore
internal import UbiquityHTTP
internal import UbiquityWire

/// The connection to a store over HTTP: pushes and pulls in the protocol's binary format, and a
/// stream of server-sent events for changes as they are committed.
///
/// Limits: 10 seconds to connect, ``IntakeLimits`` for an answer or an event. A push or pull fails
/// when no byte has moved for 30 seconds, a stream after 50 seconds or longer, depending on the
/// server's keep-alive interval. Redirects are not followed.
package struct HTTPTransport: Sendable {
    private let address: Result<ServerAddress, LinkFailure>
    private let store: StoreIdentifier
    private let credential: String
    private let device: DeviceID
    /// The number of the account's key that requests name; 0 for none.
    private let generation: UInt32
    /// The proof of that key; nil without it.
    private let proof: Bytes32?

    /// - Parameters:
    ///   - server: An address such as `http://127.0.0.1:7717`. If it is not valid, every request
    ///     fails and says so.
    ///   - device: The author of writes that do not name theirs.
    ///   - certificates: The only certificates accepted for the server, in PEM; nil means the
    ///     system's.
    package init(
        server: String, store: StoreIdentifier, credential: String, device: DeviceID,
        certificates: String? = nil
    ) {
        address = Result { () throws(LinkFailure) in
            try ServerAddress(server, certificates: certificates)
        }
        self.store = store
        self.credential = credential
        self.device = device
        (generation, proof) = (0, nil)
    }

    /// The connection of the device that is signed in.
    /// - Parameters:
    ///   - keyring: The device's keys of the account; nil if it has none.
    ///   - generation: The number of the one that requests name; 0 for none.
    package init(
        _ store: StoreIdentifier, of account: SignedInAccount, _ keyring: Keyring? = nil,
        generation: UInt32 = 0
    ) {
        self.generation = generation
        proof = keyring?.proof(of: generation)
        address = Result { () throws(LinkFailure) in try ServerAddress(of: account) }
        self.store = store
        credential = account.credential
        device = DeviceID(account.device) ?? .unassigned
    }

    /// Opens the stream of changes and passes on each event in order.
    ///
    /// Returns when the server ends the stream. Throws when it breaks or has been silent for longer
    /// than two of the server's keep-alive intervals. Cancelling the task ends it at once.
    ///
    /// `receive` is called on the queue of the HTTP client, which all of the process's stores share,
    /// so it must not block.
    package func listen(
        since cursor: Cursor?, isSaved: Bool = true, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void
    ) async throws(LinkFailure) {
        let (ends, end) = AsyncStream.makeStream(of: LinkFailure?.self)
        let cancel = listen(since: cursor, isSaved: isSaved, within: intake, receive: receive) {
            end.yield($0)
            end.finish()
        }
        var isEnded = false
        for await failure in ends {
            isEnded = true
            if let failure { throw failure }
        }
        guard isEnded else {
            cancel()
            throw LinkFailure(.unreachable, "the stream was cancelled")
        }
    }

    /// The bytes that this process has sent to servers; on Apple's systems they are not counted.
    package static var bytesSent: Int { uploadedBytes.load(ordering: .relaxed) }

    /// The proxy that requests to the account's server go through, as the environment says, without
    /// its user and password; nil for none.
    package static func proxy(of account: SignedInAccount) -> String? {
        #if os(Linux)
        CurlClient.proxy(for: account.server)
        #else
        nil
        #endif
    }

    package func push(
        _ push: Push, within intake: IntakeLimits
    ) async throws(LinkFailure) -> PushAnswer {
        try await withCheckedContinuation { continuation in
            self.push(push, within: intake) { continuation.resume(returning: $0) }
        }.get()
    }

    /// Gets the changes since the cursor, or the whole store for nil. Can include the server's
    /// configuration, for devices without a stream to bring it.
    package func pull(
        since cursor: Cursor?, isSaved: Bool = true, withConfig: Bool = false,
        within intake: IntakeLimits = IntakeLimits(nil)
    ) async throws(LinkFailure) -> ChangeSet {
        let config = withConfig ? try await AccountClient.config(at: address.get()) : nil
        var request = try request(.get, since: cursor, isSaved: isSaved)
        request.bounds = intake.message
        var changes = try await request.answer(WireChanges.self) {
            wire throws(WireError) in try ChangeSet(wire)
        }
        changes.config = config
        return changes
    }

    private func request(
        _ method: ServerRequest.Method, since cursor: Cursor? = nil, isSaved: Bool = true,
        body: [UInt8]? = nil
    ) throws(LinkFailure) -> ServerRequest {
        var request = ServerRequest.changes(
            method, of: store, since: cursor, isSaved: isSaved,
            generation: body == nil ? generation : 0, at: try address.get(),
            credential: credential, body: body)
        request.proof = proof
        return request
    }
}

extension ServerRequest {
    /// A request for a store's changes, or with changes.
    static func changes(
        _ method: Method = .get, of store: StoreIdentifier, since cursor: Cursor?, isSaved: Bool,
        generation: UInt32, at address: ServerAddress, credential: String, body: [UInt8]? = nil
    ) -> ServerRequest {
        var query = cursor.map { [(name: "since", value: $0.text)] } ?? []
        if cursor != nil, !isSaved { query.append((name: "saved", value: "false")) }
        if generation > 0 { query.append((name: "generation", value: "\(generation)")) }
        return ServerRequest(
            method, ["stores", store.string, "changes"], query: query, at: address,
            credential: credential, body: body)
    }
}

/// Pulls run in tasks of their own; other answers are read on the queue of the HTTP client.
extension HTTPTransport: StoreLink {
    package func listen(
        since cursor: Cursor?, isSaved: Bool, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void,
        ended: @escaping @Sendable (LinkFailure?) -> Void
    ) -> @Sendable () -> Void {
        do throws(LinkFailure) {
            return StreamPool.listen(
                to: store, at: try address.get(), credential: credential, since: cursor,
                isSaved: isSaved, generation: generation, proof: proof, within: intake,
                receive: receive, ended: ended)
        } catch {
            ended(error)
            return {}
        }
    }

    package func push(
        _ push: Push, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<PushAnswer, LinkFailure>) -> Void
    ) {
        do throws(LinkFailure) {
            var wire = WirePush(push, author: device)
            wire.deviceMilliseconds = UInt64(clamping: SystemClock.reading().wall)
            var request = try request(.post, body: WireFormat.protobuf.encode(wire))
            request.bounds = intake.message
            request.isNamed = false
            // A repeated push changes nothing.
            request.isRepeatable = true
            request.answer(WirePushAnswer.self) { wire throws(WireError) in
                try PushAnswer(wire)
            } answered: {
                answered($0)
            }
        } catch { answered(.failure(error)) }
    }

    package func deliveries(
        of key: Key?, saved: Cursor?,
        answered: @escaping @Sendable (Result<[DeviceDelivery], LinkFailure>) -> Void
    ) {
        var query: [(name: String, value: String)] = []
        if let key { query.append((name: "key", value: key.string)) }
        if let saved { query.append((name: "saved", value: saved.text)) }
        ask(
            ["stores", store.string, "devices"], query, WireDeliveries.self, isList: true, answered
        ) {
            wire throws(WireError) in
            var deliveries: [DeviceDelivery] = []
            for delivery in wire.deliveries { deliveries.append(try DeviceDelivery(delivery)) }
            return deliveries
        }
    }

    package func pull(
        since cursor: Cursor?, isSaved: Bool, withConfig: Bool, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<ChangeSet, LinkFailure>) -> Void
    ) {
        Task {
            do throws(LinkFailure) {
                answered(
                    .success(
                        try await pull(
                            since: cursor, isSaved: isSaved, withConfig: withConfig,
                            within: intake)))
            } catch { answered(.failure(error)) }
        }
    }

    package func history(
        of key: Key?, from place: String?, max: Int,
        answered: @escaping @Sendable (Result<HistoryPage, LinkFailure>) -> Void
    ) {
        var query = [(name: "limit", value: "\(max)")]
        if let key { query.append((name: "key", value: key.string)) }
        if let place { query.append((name: "before", value: place)) }
        askHistory("history", query, WireHistory.self, answered) {
            wire throws(WireError) in try HistoryPage(wire)
        }
    }

    package func snapshot(
        at time: HistoryRule.Time,
        answered: @escaping @Sendable (Result<StoreSnapshot, LinkFailure>) -> Void
    ) {
        let query =
            switch time {
            case .revision(let revision): (name: "revision", value: "\(revision)")
            case .milliseconds(let milliseconds): (name: "milliseconds", value: "\(milliseconds)")
            }
        askHistory("snapshot", [query], WireSnapshot.self, answered) {
            wire throws(WireError) in try StoreSnapshot(wire)
        }
    }

    package func deviceNames(
        answered: @escaping @Sendable (Result<[DeviceID: String], LinkFailure>) -> Void
    ) {
        ask(["devices"], [], WireDeviceList.self, isList: true, answered) { list in
            let names = list.devices.compactMap { device in
                DeviceID(device.id).map { ($0, device.name) }
            }
            return Dictionary(names) { first, _ in first }
        }
    }

    /// Asks for something that servers of earlier versions do not have.
    private func askHistory<Wire: WireMessage, Answer: Sendable>(
        _ path: String, _ query: [(name: String, value: String)], _ type: Wire.Type,
        _ answered: @escaping @Sendable (Result<Answer, LinkFailure>) -> Void,
        _ read: @escaping @Sendable (Wire) throws(WireError) -> Answer
    ) {
        var query = query
        if generation > 0 { query.append((name: "generation", value: "\(generation)")) }
        ask(
            ["stores", store.string, path], query, type, within: IntakeLimits(nil).message,
            { answered($0.mapError(historyFailure)) }, read)
    }

    private func historyFailure(_ failure: LinkFailure) -> LinkFailure {
        guard failure.code == ProblemCode.notFound.rawValue, let address = try? address.get()
        else { return failure }
        return LinkFailure(
            .refused, "the server at \(address) is of a version that keeps no history")
    }

    private func ask<Wire: WireMessage, Answer: Sendable>(
        _ path: [String], _ query: [(name: String, value: String)], _ type: Wire.Type,
        isList: Bool = false, within bounds: MessageBounds = .small,
        _ answered: @escaping @Sendable (Result<Answer, LinkFailure>) -> Void,
        _ read: @escaping @Sendable (Wire) throws(WireError) -> Answer
    ) {
        do throws(LinkFailure) {
            var request = ServerRequest(
                .get, path, query: query, at: try address.get(), credential: credential)
            request.bounds = bounds
            request.answer(type, isList: isList, read, answered: answered)
        } catch { answered(.failure(error)) }
    }
}
