// SPDX-License-Identifier: Apache-2.0

internal import UbiquitySimulation

/// The quality of the network between a device and the server, see ``TestDevice/network``.
public struct TestNetwork: Hashable, Sendable {
    /// The latency of one direction, drawn at random for each message.
    public var delay: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(20)
    /// The proportion of requests that never reach the server: 0 for none, 1 for all. The device
    /// notices after some seconds.
    public var lostRequests = 0.0
    /// The proportion of answers that never reach the device: the server has done its work, and the
    /// device does not know.
    public var lostAnswers = 0.0
    /// The proportion of requests that reach the server twice, the second time up to a minute
    /// later.
    public var doubledRequests = 0.0
    /// Nothing arrives any more, and nothing reports it: each request waits for up to half a
    /// minute, and the stream of changes for 50 seconds.
    public var isSilent = false

    /// A good network.
    public init() {}

    var milliseconds: ClosedRange<Int64> {
        let first = max(0, delay.lowerBound.milliseconds)
        return first...max(first, delay.upperBound.milliseconds)
    }

    func share(of fault: Fault) -> Double {
        switch fault {
        case .requestLost: isSilent ? 1 : lostRequests
        case .answerLost: isSilent ? 1 : lostAnswers
        case .duplicate: doubledRequests
        default: 0
        }
    }

    /// Whether anything can arrive.
    var isPassable: Bool { !isSilent && lostRequests < 1 && lostAnswers < 1 }
}
