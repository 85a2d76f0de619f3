// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityCore

/// The parameters of a torture.
struct TorturePlan: Sendable {
    var seconds: Double
    var seed: UInt64
    var devices: Int
    /// Of each device.
    var processes: Int
    var accounts: Int
    /// Nothing that takes a minute to be noticed.
    var isQuick: Bool
    var database: Database
    /// People seal the accounts meanwhile.
    var isSealed: Bool

    enum Database: String, CaseIterable, Sendable { case sqlite, postgresql }

    /// Milliseconds between two things that an app does, on average.
    var workInterval: Double { isQuick ? 60 : 250 }
    /// Milliseconds between two kills of an app's process, on average; of the server's; between two
    /// faults of the network, and two full disks.
    var appKillInterval: Double { isQuick ? 800 : 2_500 }
    var serverKillInterval: Double { isQuick ? 2_000 : database == .sqlite ? 9_000 : 4_000 }
    /// Of one device.
    var networkFaultInterval: Double { isQuick ? 1_500 : 4_000 }
    /// Between two kills of the database's primary.
    var primaryKillInterval: Double { isQuick ? 5_000 : 30_000 }
    static let fullDiskInterval = 12_000.0
    /// Between two times that a device is copied, or becomes a copy.
    var copyInterval: Double { isQuick ? 1_000 : 8_000 }
    /// The longest delay of bytes in a slow network, in milliseconds.
    static let delayMax: Int64 = 300
    /// The longest time for which a process is stopped, in milliseconds.
    static let stopMax: Int64 = 2_000
    /// The same for a node and for the database, which end what another one has left open for three
    /// seconds.
    static let nodeStopMax: Int64 = 8_000
    static let nodes = 3
    /// For how long a node may find no database.
    static let startPatience = Duration.seconds(120)
    /// By how many milliseconds the time of a write may be wrong: a device knows the server's time as
    /// of the moment when an answer was sent, a busy machine lets processes wait, and one may be stopped
    /// as it looks at the clock.
    static let timeTolerance: Int64 = 2 * delayMax + 2 * stopMax + 5_000

    /// For everything to agree once the faults have ended: a silent connection is noticed after 50
    /// seconds, the pauses between two attempts are at most 60.
    static let settlingSeconds = 150.0
    /// For one more change to be everywhere. It takes a second, and on a busy machine much longer.
    static let spreadingSeconds = 100.0

    // MARK: - Keys

    /// The keys that all processes of an account write.
    let sharedKeys = (0..<10).map { "k\($0)" }
    /// The keys that are only ever written together.
    let groups = [["a1", "a2", "a3"], ["b1", "b2"]]

    var groupedKeys: [[Key]] { groups.map { $0.compactMap { try? Key($0) } } }

    /// The key that only this app writes. An app never has two processes at once.
    static func ownKey(of app: String) -> String { ownPrefix + app }

    static let ownPrefix = "own."
}

extension RandomSource {
    /// Of things that happen at any time, the time to the next.
    /// - Parameter mean: Milliseconds.
    mutating func interval(mean: Double) -> Duration {
        let part = -log(Double.random(in: Double.leastNonzeroMagnitude...1, using: &self))
        return .milliseconds(Int64(min(part, 6) * mean))
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    mutating func pause(milliseconds: Int64) async {
        let time = Int64.random(in: 0...milliseconds, using: &self)
        try? await Task.sleep(for: .milliseconds(time))
    }
}
