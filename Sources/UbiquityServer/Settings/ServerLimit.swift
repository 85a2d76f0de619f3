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
        case seconds
        case days
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
        case rate([Path<Allowance>])
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
        let each: Int64 = unit == .days ? 86_400 : 1
        return ServerLimit(
            option: option, unit: unit, sentence: sentence, range: min...0x1p32,
            place: .seconds(path, each: each))
    }

    /// A rate, with what grows with it: its burst, and further allowances.
    private static func rate(
        _ option: String, _ paths: [Path<Allowance>], _ sentence: String
    ) -> ServerLimit {
        ServerLimit(
            option: option, unit: .perSecond, sentence: sentence,
            range: .leastNonzeroMagnitude...1e9, place: .rate(paths))
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
            case .rate(let paths): Self.defaults[keyPath: paths[0]].perSecond
            }
        return range.contains(number) ? number : nil
    }

    /// - Parameter number: One of ``range``, and without a fraction if ``isWhole``.
    package func set(_ number: Double, in settings: inout ServerSettings) {
        switch place {
        case .count(let path): settings[keyPath: path] = Int(number)
        case .seconds(let path, let each): settings[keyPath: path] = Int64(number) * each
        case .rate(let paths):
            let rate = Self.defaults[keyPath: paths[0]].perSecond
            for path in paths {
                let usual = Self.defaults[keyPath: path]
                settings[keyPath: path] = Allowance(
                    burst: Int((Double(usual.burst) * number / rate).rounded()),
                    perSecond: usual.perSecond * number / rate)
            }
        }
    }

    /// In the order of the help.
    package static let all: [ServerLimit] = [
        // Stores and accounts.
        .bytes("store-bytes-max", \.limits.storeBytesMax, "Bytes of all values of a store."),
        .count("keys-max", \.limits.keysMax, "Keys of a store."),
        .bytes("value-bytes-max", \.limits.valueBytesMax, "Bytes of one value."),
        .bytes("push-bytes-max", \.limits.pushBytesMax, "Bytes of one request."),
        .rate(
            "pushes-per-second", [\.allowance],
            "Pushes a second that a device may send; 30 seconds' worth at once."),
        .time(
            "history-days", in: .days, \.historySeconds,
            "Days for which replaced values stay in the history; 0 for no history.", min: 0),
        .count("accounts-max", \.accountsMax, "Accounts."),
        // Streams.
        .count("streams-max", \.streamsPerAccountMax, "Open streams of an account."),
        // The maximum is the value at which ``IdleTimeout`` reaches its own: devices take a stream for
        // dead that is silent for ten minutes.
        .count(
            "keep-alive-seconds", \.keepAliveSeconds,
            "Seconds between the keep-alives of a stream; at most 240.", unit: .seconds, max: 240),
        // Connections and requests.
        .count("connections-max", \.connectionsMax, "Connections."),
        .count(
            "connections-per-address-max", \.connectionsPerAddressMax,
            "Connections from one address."),
        .bytes(
            "buffers-bytes-max", \.buffersBytesMax,
            "Bytes of memory for all requests, answers and events that wait."),
        .rate(
            "requests-per-second", [\.requestAllowance],
            "Requests a second from one address; 10 seconds' worth at once."),
        .rate(
            "sign-ins-per-second", [\.signInAllowance, \.signInTotalAllowance],
            "Sign-in attempts a second from one address; a minute's worth at once."),
        .time(
            "drain-seconds", in: .seconds, \.drainSeconds,
            "Seconds over which a server that is to stop ends its streams; it answers requests "
                + "meanwhile.", min: 0),
    ]
}
