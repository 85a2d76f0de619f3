// SPDX-License-Identifier: Apache-2.0

/// Counts of what was done and seen.
struct Tally: Sendable {
    enum Event: String, CaseIterable, Sendable {
        case writes
        case deletions
        case batches
        case merges = "writes of keys that merge"
        case counts = "of these, of counters"
        case saves = "saves acknowledged"
        case failedSaves = "saves refused"
        case roundTrips = "round trips acknowledged"
        case failedRoundTrips = "round trips failed"
        case notifications
        case commits = "commits seen on the server"
        case deviceKills = "kills of device processes"
        case reopenings = "stores released and created again"
        case commandKills = "kills of commands"
        case sealingCommands = "commands that seal and unlock"
        case sealings = "stores sealed, with one key after another"
        case accountChanges = "sign-ins, sign-outs and wipes"
        case stops = "stops of device processes"
        case appEnds = "orderly ends of device processes"
        case serverKills = "kills of the server"
        case failedStarts = "starts that a full disk or a lost database refused"
        case nodeStops = "stops of nodes"
        case databaseCuts = "nodes cut off from their database"
        case primaryKills = "kills of the database's primary"
        case primaryStops = "stops of the database's primary"
        case promotions = "promotions of the database's standby"
        case formerPrimaries = "returns of a replaced primary"
        case connections
        case cuts
        case halfCloses = "half-closes"
        case copies = "copies made of devices"
        case clones = "devices that became a copy of another"
        case restores = "devices that became an older copy of themselves"
        case silences
        case outages
        case slowdowns
        case deviceDisksFull = "full disks of devices"
        case serverDisksFull = "full disks of the server"
    }

    private var counts: [Event: Int] = [:]

    subscript(event: Event) -> Int {
        get { counts[event, default: 0] }
        set { counts[event] = newValue }
    }

    var kills: Int { self[.deviceKills] + self[.serverKills] + self[.primaryKills] }

    /// One line.
    var brief: String {
        "\(self[.writes]) writes, \(self[.saves] + self[.roundTrips]) acknowledgements, "
            + "\(self[.notifications]) notifications, \(kills) kills, "
            + "\(self[.cuts] + self[.halfCloses] + self[.silences] + self[.outages]) "
            + "broken connections"
    }

    /// A line for each that happened.
    var lines: [String] {
        Event.allCases.filter { self[$0] > 0 }.map { event in
            let count = "\(self[event])"
            return String(repeating: " ", count: max(0, 9 - count.count)) + "\(count) "
                + event.rawValue
        }
    }
}
