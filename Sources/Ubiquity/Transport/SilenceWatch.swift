// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import NIOCore
internal import UbiquityCore

/// Fails a request when no byte has moved for too long.
///
/// Shared state: both variables. Unchecked because AsyncHTTPClient calls every method of a delegate
/// on the task's event loop, and the timer runs on it too.
final class SilenceWatch: @unchecked Sendable {
    private let address: ServerAddress
    private var patience: IdleTimeout
    private var timer: Scheduled<Void>?

    init(_ address: ServerAddress, milliseconds: Int64 = IdleTimeout.answerMilliseconds) {
        self.address = address
        patience = IdleTimeout(
            now: NIODeadline.milliseconds, silenceMilliseconds: milliseconds)
    }

    /// As ``IdleTimeout/silenceMilliseconds``. A longer silence is allowed from now on.
    var milliseconds: Int64 {
        get { patience.silenceMilliseconds }
        set { patience.silenceMilliseconds = newValue }
    }

    func move() { patience.moved(at: NIODeadline.milliseconds) }

    /// Begins to watch a task whose delegate uses this watch.
    func watch<Answer>(_ task: HTTPClient.Task<Answer>) {
        let loop = task.eventLoop
        loop.execute { [self] in
            schedule(on: loop) { [address] seconds in
                task.fail(
                    reason: LinkFailure(
                        .timedOut,
                        "nothing was heard of the server at \(address) for \(seconds) seconds"))
            }
        }
        task.futureResult.whenComplete { [self] _ in
            timer?.cancel()
            timer = nil
        }
    }

    private func schedule(on loop: any EventLoop, fail: @escaping @Sendable (Int64) -> Void) {
        let rest = patience.end - NIODeadline.milliseconds
        guard rest > 0 else { return fail(milliseconds / 1_000) }
        timer = loop.scheduleTask(in: .milliseconds(rest)) { [self] in
            schedule(on: loop, fail: fail)
        }
    }
}

extension NIODeadline {
    fileprivate static var milliseconds: Int64 { Int64(now().uptimeNanoseconds / 1_000_000) }
}
