// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization

/// Ties a subscriber to its connection: the subscriber ends when the other side closes, and an
/// ended stream closes its connection soon, even if the other side does not read.
///
/// State: `isDone`, guarded by its mutex.
final class StreamConnection: ChannelInboundHandler, Sendable {
    typealias InboundIn = Any

    /// How long an ended stream may take to send what it was about to send. A revocation by another
    /// process must take effect within a second, and is noticed late.
    private static let closedTime = TimeAmount.milliseconds(500)
    /// The same after an overflow, which only affects the slow reader.
    private static let overflowTime = TimeAmount.seconds(5)

    private let subscriber: Subscriber
    private let isDone = Mutex(false)

    init(_ subscriber: Subscriber) { self.subscriber = subscriber }

    /// The other side sends nothing more: a subscriber is gone then.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent { subscriber.end(.closed) }
        context.fireUserInboundEventTriggered(event)
    }

    func handlerRemoved(context: ChannelHandlerContext) { subscriber.end(.closed) }

    /// The stream was written to its end.
    func finish() { isDone.withLock { $0 = true } }

    func closeSoon(_ channel: any Channel, after end: Subscriber.End) {
        if isDone.withLock({ $0 }) { return }
        let time = end == .closed ? Self.closedTime : Self.overflowTime
        channel.eventLoop.scheduleTask(in: time) { [self] in
            if !isDone.withLock({ $0 }) { channel.close(promise: nil) }
        }
    }
}
