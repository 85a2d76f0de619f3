// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Counters of the server's work since it started. None identifies an account or device.
///
/// State: `state`, guarded by its lock, which is held for a few additions.
final class ServerMetrics: Sendable {
    /// A request and its outcome. The route is a pattern, never the requested path.
    struct Request: Hashable, Sendable {
        var method: String
        var route: String
        var status: Int
    }

    struct State: Sendable {
        var requests: [Request: Int] = [:]
        var requestSeconds: [String: Histogram] = [:]
        var problems: [String: Int] = [:]
        var limits: [EdgeLimit: Int] = [:]
        var pushes = 0
        var transactions: [String: Int] = [:]
        var commitPushes = Histogram.group
        var commitSeconds = Histogram.seconds
        var deliverySeconds = Histogram.seconds
        var connections = 0
        var unreadable = 0
    }

    private let state = Mutex(State())

    var current: State { state.withLock { $0 } }

    func answered(_ request: Request, seconds: Double) {
        state.withLock { state in
            state.requests[request, default: 0] += 1
            state.requestSeconds[request.route, default: .seconds].record(seconds)
        }
    }

    func refused(_ problem: Problem) {
        state.withLock { $0.problems[problem.code, default: 0] += 1 }
    }

    func limited(_ limit: EdgeLimit) {
        state.withLock { $0.limits[limit, default: 0] += 1 }
    }

    /// Counts a request that needed something unreadable in the database.
    func foundUnreadable() { state.withLock { $0.unreadable += 1 } }

    func connected() { state.withLock { $0.connections += 1 } }

    /// A group of pushes is on stable storage, or was refused.
    func committed(pushes: Int, transactions: [String: Int], seconds: Double) {
        state.withLock { state in
            state.pushes += pushes
            for (outcome, count) in transactions {
                state.transactions[outcome, default: 0] += count
            }
            state.commitPushes.record(Double(pushes))
            state.commitSeconds.record(seconds)
        }
    }

    /// Events were passed to a listener's connection, this long after their commit.
    func delivered(_ seconds: [Double]) {
        state.withLock { state in
            for seconds in seconds { state.deliverySeconds.record(seconds) }
        }
    }
}
