// SPDX-License-Identifier: Apache-2.0

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
