// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import ProcessHarness

/// One connection through a proxy, from a device to the server.
///
/// `@unchecked Sendable`: used on its event loop only.
final class ProxyLine: @unchecked Sendable {
    enum Side { case device, server }

    private let loop: any EventLoop
    private let channels: [Side: any Channel]
    /// The delay of the next bytes.
    private let delay: () -> TimeAmount
    private let ended: (ProxyLine) -> Void
    /// When the last bytes come out on each side: nothing overtakes.
    private var lastArrival: [Side: NIODeadline] = [:]
    /// Nothing passes any more, not even the end; each end goes on as if the other were only slow.
    private var isSilent = false
    private var isEnded = false

    init(
        device: any Channel, server: any Channel, delay: @escaping () -> TimeAmount,
        ended: @escaping (ProxyLine) -> Void
    ) {
        loop = device.eventLoop
        channels = [.device: device, .server: server]
        self.delay = delay
        self.ended = ended
    }

    /// - Returns: When both ends are listened to.
    func begin() -> EventLoopFuture<Void> {
        let ends = channels.map { $1.pipeline.addHandler(ProxyEnd(self, $0)) }
        return EventLoopFuture.andAllSucceed(ends, on: loop)
    }

    // MARK: - Passing on

    func received(_ bytes: ByteBuffer, from side: Side) {
        pass(to: side.other) { $0.writeAndFlush(bytes, promise: nil) }
    }

    func heardEnd(from side: Side) {
        pass(to: side.other) { $0.close(mode: .output, promise: nil) }
    }

    func broke(at side: Side) {
        channels[side]?.close(promise: nil)
        if side == .device || !isSilent { channels[side.other].map(ProxyLine.reset) }
    }

    func closed(at side: Side) {
        if side == .device || !isSilent {
            // What is on its way still arrives.
            pass(to: side.other, evenIfSilent: true) { $0.close(promise: nil) }
        }
        guard !isEnded, channels.values.allSatisfy({ !$0.isActive }) else { return }
        isEnded = true
        ended(self)
    }

    private func pass(
        to side: Side, evenIfSilent: Bool = false, _ body: @escaping (any Channel) -> Void
    ) {
        guard let channel = channels[side], evenIfSilent || !isSilent else { return }
        let earliest = lastArrival[side].map { $0 + .nanoseconds(1) } ?? .now()
        let arrival = max(earliest, .now() + delay())
        lastArrival[side] = arrival
        loop.assumeIsolated().scheduleTask(deadline: arrival) { [self] in
            if evenIfSilent || !isSilent { body(channel) }
        }
    }

    // MARK: - Faults

    /// Both ends hear that the connection was reset.
    func cut() {
        for channel in channels.values { Self.reset(channel) }
    }

    /// One end hears that the other has nothing more to say; the other way stays open.
    func halfClose(towards side: Side) { channels[side]?.close(mode: .output, promise: nil) }

    func silence() { isSilent = true }

    /// Closes with a reset instead of an end.
    static func reset(_ channel: any Channel) {
        (channel as? any SocketOptionProvider)?
            .setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in }
        channel.close(promise: nil)
    }
}

extension ProxyLine.Side {
    var other: Self { self == .device ? .server : .device }
}
