// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A store of an account, as the server knows it.
package struct StoreName: Hashable, Sendable, CustomStringConvertible {
    package var account: Int
    package var store: Int

    package init(account: Int, store: Int) { (self.account, self.store) = (account, store) }

    package var description: String { "account \(account), store \(store)" }
}

/// What apps did and saw, and what the server made durable. Checkers know nothing else.
package enum Observation {
    /// A process opened a store, or turned to another account's: this is what it shows.
    case opened(process: Int, disk: DiskName, values: [Key: PropertyListValue])
    /// A process goes on elsewhere with all that another one has in its memory.
    case resumed(process: Int, disk: DiskName, from: Int)
    /// The process turned to another account's disk.
    case moved(process: Int, DiskName)
    /// The process is no more, with or without a word.
    case ended(process: Int)
    case wrote(process: Int, [AppWrite])
    /// What an app did to a key whose writes merge.
    case proposed(AppProposal)
    /// The store refused at once what the app wrote.
    case refused(process: Int, Set<Key>)
    /// The process is about to write these to its disk, beside this cursor.
    case saves(process: Int, [StoredEntry], Cursor?)
    /// `synchronize()` returned true.
    case synchronized(process: Int)
    /// What the app would see changed without a write of its own, or a write of it was refused.
    case changed(process: Int, Set<Key>, Cause)
    /// The app was told, and read the values.
    case told(process: Int, Notice, [Key: PropertyListValue?])
    /// A process has done all that it had to do for now, and shows this.
    case rested(process: Int, values: [Key: PropertyListValue])
    /// Writes that the server refused, kept for the app.
    case withdrawn(disk: DiskName, [Record])
    /// What apps wrote under these keys before the first sync, and the server's values replace.
    case discarded(disk: DiskName, Set<Key>)

    case askedRoundTrip(process: Int, id: Int, waiting: Set<Key>)
    case finishedRoundTrip(
        process: Int, id: Int, values: [Key: PropertyListValue], waiting: Set<Key>)

    case opensStream(process: Int)
    case pulls(process: Int)
    /// Sends this, of which some was never on its disk.
    case pushes(process: Int, Push, unsaved: Set<Key> = [])
    /// The connected process has everything up to this position, but for keys of which it shows
    /// writes of its own.
    case received(
        process: Int, StoreName, Position, values: [Key: PropertyListValue], own: Set<Key>)

    case committed(Commit)
    /// The server forgot these deletions by its rule, and remembers so many.
    case forgot(StoreName, [Record], left: Int, ForgettingRule)
    case serverRestored([StoreName: Position])

    /// The device signs in: the folder is the account's from now on.
    case signedIn(device: Int, folder: String, account: Int)
    case cloned(device: Int, from: Int)
    /// The device's disks were copied, to take their own place later.
    case copied(device: Int)
    /// An older copy of the disk took its place.
    case lost(DiskName)
    /// The disk is gone for good, with what is still written there.
    case wiped(DiskName)

    /// What a device's clocks are like from now on: by how much the wall clock is wrong, and by how many
    /// millionths the uptime runs too fast.
    case clock(device: Int, error: Int64, drift: Int64, boot: UInt64)
    /// By how much the server's clock is wrong from now on.
    case serverClock(error: Int64)
    /// The device, or a process of it, stood still for so long.
    case paused(device: Int, milliseconds: Int64)
    /// What a stream was to bring the device first, a proxy kept back until so long after it was asked for.
    case keptBack(device: Int, milliseconds: Int64)

    /// Nothing has gone wrong for a long time.
    case settled(Settlement)

    /// Why something changed that the app sees.
    package enum Cause: Sendable {
        case firstDownload
        case server
        case otherProcess
        /// A push was refused.
        case answer
        case account
    }
}

/// Everything, when it should have come to agree.
package struct Settlement {
    package var server: [StoreName: [Key: Record]]
    /// All that the server has ever folded of counts.
    package var folded: [StoreName: [FoldedIncrement]]
    package var processes: [Process]

    package init(
        server: [StoreName: [Key: Record]], folded: [StoreName: [FoldedIncrement]] = [:],
        processes: [Process]
    ) {
        self.server = server
        self.folded = folded
        self.processes = processes
    }

    package struct Process {
        package var number: Int
        package var disk: DiskName
        /// Who is signed in on the device.
        package var account: Int?
        /// Of each record, parts by their own keys.
        package var values: [Key: PropertyListValue]
        package var waiting: Set<Key>
        package var isConnected: Bool
        package var onDisk: [Key: PropertyListValue]
        /// What the app sees of keys with parts.
        package var merged: [Key: PropertyListValue]
        /// What the store says of its disk; nil: nothing is wrong.
        package var diskFailure: String?
        /// How often time alone had it look for something to do, since nothing goes wrong any more.
        package var wakes: Int

        package init(
            number: Int, disk: DiskName, account: Int?, values: [Key: PropertyListValue],
            waiting: Set<Key>, isConnected: Bool, onDisk: [Key: PropertyListValue],
            merged: [Key: PropertyListValue] = [:], diskFailure: String? = nil, wakes: Int = 0
        ) {
            self.number = number
            self.disk = disk
            self.account = account
            self.values = values
            self.waiting = waiting
            self.isConnected = isConnected
            self.onDisk = onDisk
            self.merged = merged
            self.diskFailure = diskFailure
            self.wakes = wakes
        }
    }
}

/// A push that the server made durable.
package struct Commit {
    package var store: StoreName
    package var before: [Key: Record]
    package var after: [Key: Record]
    package var position: Position
    package var push: Push
    package var results: [TransactionResult]
    package var writes: [Record]
    package var limits: StoreLimits
    package var serverMilliseconds: Int64
    package var newestForgotten: HybridTimestamp
    /// Who sent it: the device's name at the server.
    package var device: DeviceID
    /// What was folded of counts, or was so before and has changed; nil: whoever observed it was not told.
    package var folded: [FoldedIncrement]?
    /// See ``PushAdmission/partsMax``.
    package var partsMax: Int

    package init(
        store: StoreName, before: [Key: Record], after: [Key: Record], position: Position,
        push: Push, results: [TransactionResult], writes: [Record], limits: StoreLimits,
        serverMilliseconds: Int64, newestForgotten: HybridTimestamp,
        device: DeviceID, folded: [FoldedIncrement]? = [],
        partsMax: Int = 60
    ) {
        self.store = store
        self.before = before
        self.after = after
        self.position = position
        self.push = push
        self.results = results
        self.writes = writes
        self.limits = limits
        self.serverMilliseconds = serverMilliseconds
        self.newestForgotten = newestForgotten
        self.device = device
        self.folded = folded
        self.partsMax = partsMax
    }
}
