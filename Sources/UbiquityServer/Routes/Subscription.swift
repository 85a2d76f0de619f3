// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import NIOCore
internal import UbiquityCore

/// Keeps a subscriber subscribed while it is retained: the hub drops the subscriber when this is
/// released, even if the stream was never written.
final class Subscription: Sendable {
    let subscriber: Subscriber
    private let hub: PushHub

    init(_ subscriber: Subscriber, _ hub: PushHub) {
        self.subscriber = subscriber
        self.hub = hub
    }

    deinit { hub.unsubscribe(subscriber) }

    /// Returns when the subscriber ends. Throws when the connection does.
    @concurrent func write(
        from start: StreamStart, to writer: inout any ResponseBodyWriter
    ) async throws {
        defer { hub.unsubscribe(subscriber) }
        for message in start.messages { try await writer.write(ServerSentEvent.bytes(of: message)) }
        while true {
            switch await subscriber.next() {
            case .events(let events):
                let news = events.filter { $0.revision.map(start.isNews) ?? true }
                try await writer.write(contentsOf: news.map(\.bytes))
                subscriber.wrote(events)
                hub.delivered(events)
            case .end(.overflow): return try await writer.write(ServerSentEvent.resync)
            case .end(.closed): return
            }
        }
    }
}
