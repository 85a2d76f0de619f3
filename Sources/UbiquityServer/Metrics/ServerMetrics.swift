// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityWire

/// Counters of the server's work since it started. None identifies an account or device.
///
/// State: `state`, guarded by its lock, which is held for a few additions.
final class ServerMetrics: Sendable {
    /// A request and its outcome. The route is a pattern, never the requested path.
    struct AnsweredRequest: Hashable, Sendable {
        var method: String
        var route: String
        var status: Int
    }

    struct State: Sendable {
        var requests: [AnsweredRequest: Int] = [:]
        var requestSeconds: [String: Histogram] = [:]
        var problems: [ProblemCode: Int] = [:]
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

    func answered(_ request: AnsweredRequest, seconds: Double) {
        state.withLock { state in
            state.requests[request, default: 0] += 1
            state.requestSeconds[request.route, default: .seconds].record(seconds)
        }
    }

    func refused(_ code: ProblemCode) {
        state.withLock { $0.problems[code, default: 0] += 1 }
    }

    func limited(_ limit: EdgeLimit) {
        state.withLock { $0.limits[limit, default: 0] += 1 }
    }

    /// Counts a request that needed something unreadable in the database.
    func foundUnreadable() { state.withLock { $0.unreadable += 1 } }

    func connected() { state.withLock { $0.connections += 1 } }

    /// Counts a group of pushes that is on stable storage, or was refused.
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

    /// Records the time from a commit to the passing of its event to a subscriber's connection.
    func delivered(seconds: Double) {
        state.withLock { $0.deliverySeconds.record(seconds) }
    }
}

/// A limit for clients, as named in the log and the metrics.
enum EdgeLimit: String, CaseIterable, Hashable, Sendable {
    case connections
    case connectionsPerAddress = "connections-per-address"
    case requestsPerAddress = "requests-per-address"
    case signInAttempts = "sign-in-attempts"
    case pushesPerDevice = "pushes-per-device"
    case headerTooLarge = "header-too-large"
    case malformedRequest = "malformed-request"
    case foreignHost = "foreign-host"
    case bodyTooLarge = "body-too-large"
    case bodiesInMemory = "bodies-in-memory"
    case answersInMemory = "answers-in-memory"
    case listenersPerAccount = "listeners-per-account"
    case listenerOverflow = "listener-overflow"
    case slowHead = "slow-head"
    case slowBody = "slow-body"
    case slowReader = "slow-reader"
    case pipelinedRequests = "pipelined-requests"
    case handshake = "tls-handshake"
}
