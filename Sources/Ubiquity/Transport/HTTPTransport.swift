// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore
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
    }

    /// Opens the stream of changes and passes on each event in order.
    ///
    /// Returns when the server ends the stream. Throws when it breaks or has been silent for longer
    /// than two of the server's keep-alive intervals. Cancelling the task ends it at once.
    ///
    /// `receive` is called on the connection's event loop, which all of the process's stores share,
    /// so it must not block. It is never called after this function has returned.
    package func listen(
        since cursor: Cursor?, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void
    ) async throws(LinkFailure) {
        var request = try request(.get, since: cursor)
        request.accept = "text/event-stream;events=binary"
        var stream = ChangeStream(within: intake.message, receive: receive)
        try await request.send(
            to: AnswerReceiver(
                request.address, silenceMilliseconds: ChangeStream.silenceMilliseconds,
                pieces: .init(mediaType: "text/event-stream") { try stream.take($0, &$1) }))
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
        since cursor: Cursor?, withConfig: Bool = false,
        within intake: IntakeLimits = IntakeLimits(nil)
    ) async throws(LinkFailure) -> ChangeSet {
        let config = withConfig ? try await AccountClient.config(at: address.get()) : nil
        var request = try request(.get, since: cursor)
        request.bounds = intake.message
        var changes = try await request.answer(WireChanges.self, .changes) {
            wire throws(WireError) in try ChangeSet(wire)
        }
        changes.config = config
        return changes
    }

    private func request(
        _ method: ServerRequest.Method, since cursor: Cursor? = nil, body: [UInt8]? = nil
    ) throws(LinkFailure) -> ServerRequest {
        ServerRequest(
            method, ["stores", store.string, "changes"],
            query: cursor.map { (name: "since", value: $0.text) }, at: try address.get(),
            credential: credential, body: body)
    }
}

/// A push is sent and answered on the connection's event loop; other calls run in tasks of their own.
extension HTTPTransport: StoreLink {
    package func listen(
        since cursor: Cursor?, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void,
        ended: @escaping @Sendable (LinkFailure?) -> Void
    ) -> @Sendable () -> Void {
        let task = Task {
            do throws(LinkFailure) {
                try await listen(since: cursor, within: intake, receive: receive)
                ended(nil)
            } catch { ended(error) }
        }
        return { task.cancel() }
    }

    package func push(
        _ push: Push, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<PushAnswer, LinkFailure>) -> Void
    ) {
        do throws(LinkFailure) {
            var request = try request(
                .post, body: WireFormat.protobuf.encode(WirePush(push, author: device)))
            request.bounds = intake.message
            request.isNamed = false
            // A repeated push changes nothing.
            request.isRepeatable = true
            request.answer(WirePushAnswer.self, .pushAnswer) { wire throws(WireError) in
                try PushAnswer(wire)
            } answered: {
                answered($0)
            }
        } catch { answered(.failure(error)) }
    }

    package func pull(
        since cursor: Cursor?, withConfig: Bool, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<ChangeSet, LinkFailure>) -> Void
    ) {
        Task {
            do throws(LinkFailure) {
                answered(
                    .success(
                        try await pull(since: cursor, withConfig: withConfig, within: intake)))
            } catch { answered(.failure(error)) }
        }
    }
}
