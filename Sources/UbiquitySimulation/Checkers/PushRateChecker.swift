// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A process sends no more often than its allowance, opens no more streams than a careful client
/// does, whatever the server does, and polls less and less often while nothing happens.
package final class PushRateChecker: Checker {
    private struct Sender {
        var tokens: Double
        var countedAt: Int64?
        var opened = RecentCount()
    }

    private let allowance: Allowance
    private let now: () -> Int64
    private var senders: [Int: Sender] = [:]
    /// The number of pulls of each process since something last happened anywhere.
    private var pulls: [Int: Int] = [:]
    private var quietSince: Int64 = 0

    /// While nothing happens, a process may make a burst of this many pulls, and then one per
    /// interval.
    private static let pullsMax = 30
    private static let pullMilliseconds: Int64 = 20_000
    private static let streamsMax = 25
    private static let windowMilliseconds: Int64 = 10_000
    /// For clocks that run too fast by this factor at most, and for rounded times.
    private static let tolerance = 1.01

    /// - Parameter now: The true time, in milliseconds.
    package init(allowance: Allowance, now: @escaping () -> Int64) {
        self.allowance = allowance
        self.now = now
    }

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .received, .saves, .rested, .pulls, .read, .tells: break
        default: (pulls, quietSince) = ([:], now())
        }
        switch observation {
        case .pulls(let process): return pull(process)
        case .moved(let process, _), .opened(let process, _, _):
            // Another account's server counts separately.
            senders[process] = Sender(tokens: Double(allowance.burst))
        case .resumed(let process, _, let original):
            // Its memory is from a time when less of the allowance was used.
            senders[process] = senders[original]
            senders[process]?.tokens = Double(allowance.burst)
        case .ended(let process): senders[process] = nil
        case .pushes(let process, _, _, _): return push(process)
        case .opensStream(let process): return open(process)
        default: break
        }
        return nil
    }

    private func push(_ process: Int) -> String? {
        guard var sender = senders[process] else { return nil }
        let now = now()
        let elapsed = Double(now - (sender.countedAt ?? now)) / 1_000
        sender.tokens = min(
            Double(allowance.burst), sender.tokens + elapsed * allowance.perSecond * Self.tolerance)
        sender.countedAt = now
        sender.tokens -= 1
        senders[process] = sender
        guard sender.tokens < -0.1 else { return nil }
        return "process \(process) pushed more often than it may"
    }

    private func pull(_ process: Int) -> String? {
        pulls[process, default: 0] += 1
        let elapsed = now() - quietSince
        guard let count = pulls[process],
            Int64(count - Self.pullsMax) * Self.pullMilliseconds > elapsed
        else { return nil }
        return "process \(process) asked \(count) times in \(elapsed) ms, and nothing had happened"
    }

    private func open(_ process: Int) -> String? {
        let count = senders[process]?.opened.note(at: now(), within: Self.windowMilliseconds)
        guard let count, count > Self.streamsMax else { return nil }
        return "process \(process) opened \(count) streams in \(Self.windowMilliseconds) ms"
    }
}
