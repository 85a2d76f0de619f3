// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore
import UbiquityServer

/// The limits of connections and traffic that an operator may want to change. Nil for the server's
/// default.
struct ServerTrafficOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Open streams of an account. (default: 64)", valueName: "number"))
    var listenersMax: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes that may wait for one stream. (default: 4194304)", valueName: "number"))
    var listenerBufferBytesMax: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes that may wait for all streams together. (default: 268435456)",
            valueName: "number"))
    var listenersBytesMax: Int?

    @Option(
        help: ArgumentHelp(
            "Seconds between the signs of life of a stream. (default: 20)", valueName: "number"))
    var keepAliveSeconds: Int?

    @Option(
        help: ArgumentHelp(
            "Connections. (default: 16384)", valueName: "number"))
    var connectionsMax: Int?

    @Option(
        help: ArgumentHelp(
            "Connections from one address. (default: 1024)", valueName: "number"))
    var connectionsPerAddressMax: Int?

    @Option(
        help: ArgumentHelp(
            "Seconds after which a connection without requests is closed. (default: 120)",
            valueName: "number"))
    var idleConnectionSeconds: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes of the address and the headers of a request. (default: 16384)",
            valueName: "number"))
    var headerBytesMax: Int?

    @Option(
        help: ArgumentHelp(
            "Headers of a request. (default: 64)", valueName: "number"))
    var headerFieldsMax: Int?

    @Option(
        help: ArgumentHelp(
            "Seconds for the headers of a request to arrive. (default: 20)", valueName: "number"))
    var headSecondsMax: Int?

    @Option(
        help: ArgumentHelp(
            "Seconds for the body of a request to arrive. (default: 120)", valueName: "number"))
    var bodySecondsMax: Int?

    @Option(
        help: ArgumentHelp(
            "Seconds for which a body or an answer may be too slow. (default: 20)",
            valueName: "number"))
    var slowSecondsMax: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes a second of a body; below, it is too slow. (default: 1024)", valueName: "number")
    )
    var bodyBytesPerSecondMin: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes a second that are read of an answer; below, it is too slow. (default: 1024)",
            valueName: "number"))
    var answerBytesPerSecondMin: Int?

    @Option(
        help: ArgumentHelp(
            "Requests of a connection that wait for their answers. (default: 16)",
            valueName: "number"))
    var pipelinedRequestsMax: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes of the bodies of all requests together. (default: 134217728)",
            valueName: "number"))
    var bodiesBytesMax: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes of all answers together that nobody has read yet. (default: 268435456)",
            valueName: "number"))
    var answersBytesMax: Int?

    @Option(
        help: ArgumentHelp(
            "Requests that one address may make at once. (default: 6000)", valueName: "number"))
    var requestBurst: Int?

    @Option(
        help: ArgumentHelp(
            "Requests a second that one address may make in the long run. (default: 600)",
            valueName: "number"))
    var requestsPerSecond: Double?

    @Option(
        help: ArgumentHelp(
            "Attempts to sign in that one address may make at once. (default: 60)",
            valueName: "number"))
    var signInBurst: Int?

    @Option(
        help: ArgumentHelp(
            "Attempts to sign in a second that one address may make in the long run. (default: 1)",
            valueName: "number"))
    var signInsPerSecond: Double?

    @Option(
        help: ArgumentHelp(
            "Attempts to sign in that all addresses together may make at once. (default: 1000)",
            valueName: "number"))
    var totalSignInBurst: Int?

    @Option(
        help: ArgumentHelp(
            "Attempts to sign in a second of all addresses together in the long run. (default: 50)",
            valueName: "number"))
    var totalSignInsPerSecond: Double?

    @Option(
        help: ArgumentHelp(
            "Pushes that wait for the disk. (default: 4096)", valueName: "number"))
    var waitingPushesMax: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes of the pushes that wait for the disk. (default: 67108864)", valueName: "number"))
    var waitingPushBytesMax: Int?

    @Option(
        help: ArgumentHelp(
            "Reads that wait for a thread. (default: 4096)", valueName: "number"))
    var waitingReadsMax: Int?

    @Option(
        help: ArgumentHelp(
            "Deletions that a store remembers; of long keys fewer. (default: 16384)",
            valueName: "number"))
    var deletionsMax: Int?

    @Option(
        help: ArgumentHelp(
            "Days after which a device that was not seen holds up no forgetting. (default: 90)",
            valueName: "number"))
    var deviceLiveDays: Int?

    @Option(
        help: ArgumentHelp(
            "Seconds for which the end of the server waits for requests under way. (default: 10)",
            valueName: "number"))
    var shutdownSeconds: Int?

    func validate() throws {
        guard numbers.allSatisfy({ $0.map { (1...Self.numberMax).contains($0) } ?? true }) else {
            throw ValidationError("A limit needs a number from 1 to \(Self.numberMax).")
        }
        guard keepAliveSeconds ?? 0 <= Self.keepAliveSecondsMax else {
            throw ValidationError(
                "--keep-alive-seconds is at most \(Self.keepAliveSecondsMax): devices take a stream for "
                    + "dead that is silent for ten minutes.")
        }
        for rate in [requestsPerSecond, signInsPerSecond, totalSignInsPerSecond] {
            guard rate.map({ $0 > 0 && $0.isFinite }) ?? true else {
                throw ValidationError("A number a second needs to be above 0.")
            }
        }
    }

    private var numbers: [Int?] {
        [
            listenersMax, listenerBufferBytesMax, listenersBytesMax, keepAliveSeconds,
            connectionsMax, connectionsPerAddressMax, idleConnectionSeconds, headerBytesMax,
            headerFieldsMax, headSecondsMax, bodySecondsMax, slowSecondsMax, bodyBytesPerSecondMin,
            answerBytesPerSecondMin, pipelinedRequestsMax, bodiesBytesMax, answersBytesMax,
            requestBurst, signInBurst, totalSignInBurst, waitingPushesMax, waitingPushBytesMax,
            waitingReadsMax,
            deletionsMax, deviceLiveDays, shutdownSeconds,
        ]
    }

    /// The value at which ``IdleTimeout`` reaches its maximum.
    private static let keepAliveSecondsMax = 240

    /// Products of greater limits could overflow.
    private static let numberMax = 1 << 32

    func apply(to settings: inout ServerSettings) {
        func set<Value>(_ limit: inout Value, _ value: Value?) { if let value { limit = value } }
        set(&settings.listenersPerAccountMax, listenersMax)
        set(&settings.listenerBufferBytesMax, listenerBufferBytesMax)
        set(&settings.listenersBytesMax, listenersBytesMax)
        set(&settings.keepAliveSeconds, keepAliveSeconds)
        set(&settings.connectionsMax, connectionsMax)
        set(&settings.connectionsPerAddressMax, connectionsPerAddressMax)
        set(&settings.idleConnectionSeconds, idleConnectionSeconds.map { Int64($0) })
        set(&settings.headerBytesMax, headerBytesMax)
        set(&settings.headerFieldsMax, headerFieldsMax)
        set(&settings.headSecondsMax, headSecondsMax.map { Int64($0) })
        set(&settings.bodySecondsMax, bodySecondsMax.map { Int64($0) })
        set(&settings.slowSecondsMax, slowSecondsMax.map { Int64($0) })
        set(&settings.bodyBytesPerSecondMin, bodyBytesPerSecondMin)
        set(&settings.answerBytesPerSecondMin, answerBytesPerSecondMin)
        set(&settings.pipelinedRequestsMax, pipelinedRequestsMax)
        set(&settings.bodiesBytesMax, bodiesBytesMax)
        set(&settings.answersBytesMax, answersBytesMax)
        set(&settings.requestAllowance.burst, requestBurst)
        set(&settings.requestAllowance.perSecond, requestsPerSecond)
        set(&settings.signInAllowance.burst, signInBurst)
        set(&settings.signInAllowance.perSecond, signInsPerSecond)
        set(&settings.signInTotalAllowance.burst, totalSignInBurst)
        set(&settings.signInTotalAllowance.perSecond, totalSignInsPerSecond)
        set(&settings.waitingPushesMax, waitingPushesMax)
        set(&settings.waitingPushBytesMax, waitingPushBytesMax)
        set(&settings.waitingReadsMax, waitingReadsMax)
        set(&settings.deletionsPerStoreMax, deletionsMax)
        set(&settings.deviceLiveSeconds, deviceLiveDays.map { Int64($0) * 86_400 })
        set(&settings.shutdownSeconds, shutdownSeconds.map { Int64($0) })
    }
}
