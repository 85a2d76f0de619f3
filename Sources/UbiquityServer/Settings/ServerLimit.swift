// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// A limit that a server operator may change: an option of `ubiquity serve`. Its default is the one of
/// ``ServerSettings``. The options, their help and checks come from ``all``, and a test keeps
/// docs/SETTINGS.md true to it, which also says what happens when a limit is reached.
package struct ServerLimit: Sendable {
    /// The unit of the option's number, as docs/SETTINGS.md has it. A limit without one is a count.
    package enum Unit: String, Sendable {
        case count = ""
        case bytes
        case utf16Units = "UTF-16 units"
        case seconds
        case minutes
        case days
        case bytesPerSecond = "bytes a second"
        case perSecond = "a second"
    }

    /// Without the dashes.
    package let option: String
    package let unit: Unit
    /// The sentence of the help.
    package let sentence: String
    /// The option's range. Products of greater limits could overflow.
    package let range: ClosedRange<Double>
    private let place: Place

    private typealias Path<Value> = any WritableKeyPath<ServerSettings, Value> & Sendable

    private enum Place {
        case count(Path<Int>)
        case seconds(Path<Int64>, each: Int64)
        case rate(Path<Double>)
    }

    private static func count(
        _ option: String, _ path: Path<Int>, _ sentence: String, unit: Unit = .count,
        max: Double = 0x1p32
    ) -> ServerLimit {
        ServerLimit(
            option: option, unit: unit, sentence: sentence, range: 1...max, place: .count(path))
    }

    private static func bytes(
        _ option: String, _ path: Path<Int>, _ sentence: String
    ) -> ServerLimit {
        count(option, path, sentence, unit: .bytes, max: 0x1p40)
    }

    private static func time(
        _ option: String, in unit: Unit, _ path: Path<Int64>, _ sentence: String, min: Double = 1
    ) -> ServerLimit {
        let each: Int64 = unit == .days ? 86_400 : unit == .minutes ? 60 : 1
        return ServerLimit(
            option: option, unit: unit, sentence: sentence, range: min...0x1p32,
            place: .seconds(path, each: each))
    }

    private static func rate(
        _ option: String, _ path: Path<Double>, _ sentence: String
    ) -> ServerLimit {
        ServerLimit(
            option: option, unit: .perSecond, sentence: sentence,
            range: .leastNonzeroMagnitude ... .greatestFiniteMagnitude, place: .rate(path))
    }

    /// Whether its number has no fraction.
    package var isWhole: Bool { if case .rate = place { false } else { true } }

    private static let defaults = ServerSettings(dataFolder: "")

    /// The default; nil if there is none.
    package var standard: Double? {
        let number =
            switch place {
            case .count(let path): Double(Self.defaults[keyPath: path])
            case .seconds(let path, let each): Double(Self.defaults[keyPath: path] / each)
            case .rate(let path): Self.defaults[keyPath: path]
            }
        return range.contains(number) ? number : nil
    }

    /// - Parameter number: One of ``range``, and without a fraction if ``isWhole``.
    package func set(_ number: Double, in settings: inout ServerSettings) {
        switch place {
        case .count(let path): settings[keyPath: path] = Int(number)
        case .seconds(let path, let each): settings[keyPath: path] = Int64(number) * each
        case .rate(let path): settings[keyPath: path] = number
        }
    }

    /// In the order of the help.
    package static let all: [ServerLimit] = [
        // Stores and accounts.
        .bytes("store-bytes-max", \.limits.storeBytesMax, "Bytes of all values of a store."),
        .count("keys-max", \.limits.keysMax, "Keys of a store."),
        .bytes("value-bytes-max", \.limits.valueBytesMax, "Bytes of one value."),
        .bytes("key-bytes-max", \.keyBytesMax, "Bytes of UTF-8 of a key."),
        .count(
            "key-utf16-max", \.keyUTF16Max, "UTF-16 units of a key, instead of bytes.",
            unit: .utf16Units),
        .bytes(
            "push-bytes-max", \.limits.pushBytesMax, "Bytes of one request."),
        .count("push-burst", \.allowance.burst, "Pushes that a device may send at once."),
        .rate(
            "pushes-per-second", \.allowance.perSecond,
            "Pushes a second that a device may send in the long run."),
        .time(
            "deletions-remembered-days", in: .days, \.deletionsRememberedSeconds,
            "Days for which deletions are remembered."),
        .count(
            "deletions-max", \.deletionsPerStoreMax,
            "Deletions that a store remembers; of long keys fewer."),
        .time(
            "device-live-days", in: .days, \.deviceLiveSeconds,
            "Days after which an unseen device no longer holds up compaction."),
        .time(
            "history-days", in: .days, \.historySeconds,
            "Days for which replaced values stay in the history; 0 for no history.", min: 0),
        .count(
            "history-versions", \.versionsPerEntryMax,
            "Replaced values of a key, or of one of its parts, in the history."),
        .bytes(
            "history-bytes", \.historyBytesMax,
            "Bytes of the history of a store; if not given, four times --store-bytes-max."),
        .time(
            "code-minutes", in: .minutes, \.signInCodeSeconds,
            "Minutes for which a sign-in code is valid."),
        .count("accounts-max", \.accountsMax, "Accounts."),
        .count("devices-max", \.devicesPerAccountMax, "Devices of an account."),
        .count("stores-max", \.storesPerAccountMax, "Stores of an account."),
        .count("apps-max", \.appsMax, "Registered apps."),
        .count("audit-entries-max", \.auditEntriesMax, "Entries of the audit log."),
        // Streams.
        .count("listeners-max", \.listenersPerAccountMax, "Open streams of an account."),
        .bytes(
            "listener-buffer-bytes-max", \.listenerBufferBytesMax,
            "Bytes that may wait for one stream."),
        .bytes(
            "listeners-bytes-max", \.listenersBytesMax,
            "Bytes that may wait for all streams together."),
        // The maximum is the value at which ``IdleTimeout`` reaches its own: devices take a stream for
        // dead that is silent for ten minutes.
        .count(
            "keep-alive-seconds", \.keepAliveSeconds,
            "Seconds between the keep-alives of a stream; at most 240.", unit: .seconds, max: 240),
        // Connections and requests.
        .count(
            "connections-max", \.connectionsMax, "Connections."),
        .count(
            "connections-per-address-max", \.connectionsPerAddressMax,
            "Connections from one address."),
        .time(
            "idle-connection-seconds", in: .seconds, \.idleConnectionSeconds,
            "Seconds after which a connection without requests is closed."),
        .bytes(
            "header-bytes-max", \.headerBytesMax,
            "Bytes of the address and the headers of a request."),
        .count("header-fields-max", \.headerFieldsMax, "Headers of a request."),
        .time(
            "head-seconds-max", in: .seconds, \.headSecondsMax,
            "Seconds for the headers of a request to arrive."),
        .time(
            "body-seconds-max", in: .seconds, \.bodySecondsMax,
            "Seconds for the body of a request to arrive."),
        .time(
            "slow-seconds-max", in: .seconds, \.slowSecondsMax,
            "Seconds for which a body or an answer may be slower than the next two options."),
        .count(
            "body-bytes-per-second-min", \.bodyBytesPerSecondMin,
            "The minimum rate of a body, in bytes a second.", unit: .bytesPerSecond),
        .count(
            "answer-bytes-per-second-min", \.answerBytesPerSecondMin,
            "The minimum rate at which an answer is read, in bytes a second.",
            unit: .bytesPerSecond),
        .count(
            "pipelined-requests-max", \.pipelinedRequestsMax,
            "Requests of a connection that wait for their answers."),
        .bytes(
            "bodies-bytes-max", \.bodiesBytesMax,
            "Bytes of all request bodies together."),
        .bytes(
            "answers-bytes-max", \.answersBytesMax,
            "Bytes of all unread answers together."),
        .count(
            "request-burst", \.requestAllowance.burst,
            "Requests that one address may send at once."),
        .rate(
            "requests-per-second", \.requestAllowance.perSecond,
            "Requests a second that one address may send in the long run."),
        .count(
            "sign-in-burst", \.signInAllowance.burst,
            "Sign-in attempts that one address may make at once."),
        .rate(
            "sign-ins-per-second", \.signInAllowance.perSecond,
            "Sign-in attempts a second that one address may make in the long run."),
        .count(
            "total-sign-in-burst", \.signInTotalAllowance.burst,
            "Sign-in attempts that all addresses together may make at once."),
        .rate(
            "total-sign-ins-per-second", \.signInTotalAllowance.perSecond,
            "Sign-in attempts a second from all addresses together in the long run."),
        // Work.
        .count("waiting-pushes-max", \.waitingPushesMax, "Pushes that wait for the disk."),
        .bytes(
            "waiting-push-bytes-max", \.waitingPushBytesMax,
            "Bytes of the pushes that wait for the disk."),
        .count("waiting-reads-max", \.waitingReadsMax, "Reads that wait for a thread."),
        .time(
            "drain-seconds", in: .seconds, \.drainSeconds,
            "Seconds over which a server that is to stop ends its streams; it answers requests "
                + "meanwhile.", min: 0),
        .time(
            "shutdown-seconds", in: .seconds, \.shutdownSeconds,
            "Seconds for which a shutdown waits for requests under way."),
    ]
}

extension ServerSettings {
    /// 0 where keys are limited in UTF-16 units.
    fileprivate var keyBytesMax: Int {
        get { if case .utf8Bytes(let max) = limits.key { max } else { 0 } }
        set { limits.key = .utf8Bytes(newValue) }
    }

    /// 0 where keys are limited in bytes.
    fileprivate var keyUTF16Max: Int {
        get { if case .utf16Units(let max) = limits.key { max } else { 0 } }
        set { limits.key = .utf16Units(newValue) }
    }
}
