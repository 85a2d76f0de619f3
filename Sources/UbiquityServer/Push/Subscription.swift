// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import NIOCore
internal import UbiquityCore

/// Keeps a listener subscribed while it is retained: the hub drops the listener when this is
/// released, even if the stream was never written.
final class Subscription: Sendable {
    let listener: Listener
    private let hub: PushHub

    init(_ listener: Listener, _ hub: PushHub) {
        self.listener = listener
        self.hub = hub
    }

    deinit { hub.unsubscribe(listener) }

    /// Returns when the listener ends. Throws when the connection does.
    @concurrent func write(
        from start: StreamStart, to writer: inout any ResponseBodyWriter
    ) async throws {
        defer { hub.unsubscribe(listener) }
        for message in start.messages { try await writer.write(ServerSentEvent.bytes(of: message)) }
        while true {
            switch await listener.next() {
            case .events(let events):
                let news = events.filter { $0.revision.map(start.isNews) ?? true }
                try await writer.write(contentsOf: news.map(\.bytes))
                listener.wrote(events)
                hub.told(events)
            case .end(.overflow): return try await writer.write(ServerSentEvent.resync)
            case .end(.closed): return
            }
        }
    }
}
