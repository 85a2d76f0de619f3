// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A store of an account on the server.
package struct StoreReference: Hashable, Comparable, Sendable, CustomStringConvertible {
    package var account: Int
    package var store: Int

    package init(account: Int, store: Int) { (self.account, self.store) = (account, store) }

    package var description: String { "account \(account), store \(store)" }

    package static func < (one: StoreReference, other: StoreReference) -> Bool {
        (one.account, one.store) < (other.account, other.store)
    }
}

/// An event of apps or of the server's storage. Checkers know nothing else.
package enum Observation {
    /// A process opened a store, or switched to another account's, and shows these values.
    case opened(process: Int, disk: DiskReference, values: [Key: PropertyListValue])
    /// A process continues elsewhere with everything that another one has in memory.
    case resumed(process: Int, disk: DiskReference, from: Int)
    /// The process switched to another account's disk.
    case moved(process: Int, DiskReference)
    /// The process ended, normally or abruptly.
    case ended(process: Int)
    /// The process has the lease of its disk now, or has been told that it lost it.
    case leads(process: Int, Bool)
    case wrote(process: Int, [AppWrite])
    /// An app changed a key whose writes merge.
    case merged(AppOperation)
    /// The app's own rule has been called for a write of the app, which returns only now: the app
    /// sees this value.
    case decided(process: Int, Key, PropertyListValue?)
    /// The store refused the app's write at once.
    case refused(process: Int, Set<Key>)
    /// The process is about to write these to its disk, beside this cursor.
    case saves(process: Int, [StoredEntry], Cursor?)
    /// `synchronize()` returned true.
    case synchronized(process: Int)
    /// A save of the process has ended, and whether the disk has refused all of it.
    case endedSave(process: Int, isRefused: Bool)
    /// The reason why the disk does not save, as the app is told; nil if it does.
    case showsDisk(process: Int, failure: String?)
    /// The values visible to the app changed without a write of its own, or a write of it was
    /// refused.
    case changed(process: Int, Set<Key>, Cause)
    /// The app was notified, and read the values.
    case notified(process: Int, Notice, [Key: PropertyListValue?])
    /// A process has nothing more to do for now, and shows these values.
    case rested(process: Int, values: [Key: PropertyListValue])
    /// A process has nothing more to do for now, though something is not saved, and its disk has
    /// refused nothing.
    case restedUnsaved(process: Int)
    /// Writes that the server refused, kept for the app.
    case withdrawn(disk: DiskReference, [Record])
    /// Writes from before the first sync that the server's values replace.
    case discarded(disk: DiskReference, Set<Key>)

    case askedRoundTrip(process: Int, id: Int, waiting: Set<Key>)
    case finishedRoundTrip(
        process: Int, id: Int, values: [Key: PropertyListValue], waiting: Set<Key>)

    case opensStream(process: Int)
    case pulls(process: Int)
    /// Sends this push, some of which was never on its disk.
    /// `readable` has the keys of a sealed account whose values a server could read.
    case pushes(process: Int, Push, unsaved: Set<Key> = [], readable: Set<Key> = [])
    /// It sends writes of these keys that it dates in the future.
    case betrays(process: Int, Set<Key>)
    /// The connected process has everything up to this position, except for keys with visible
    /// writes of its own, or of which it says that it does not take what the server has.
    case received(
        process: Int, StoreReference, Position, values: [Key: PropertyListValue], own: Set<Key>)

    /// The process tells the server that everything up to this position is on its disk, which has
    /// these values of the server, and waiting writes of its own.
    case tells(
        process: Int, StoreReference, Position, values: [Key: PropertyListValue], own: Set<Key>)

    case committed(Commit)
    /// The server compacted these tombstones by its rule. `left` is the number that remains.
    case compacted(StoreReference, [Record], left: Int, CompactionRule)
    /// The server has this of a store's history.
    case kept(HistoryView)
    /// An older copy of the server takes its place. It keeps the answers if it has everything that
    /// was answered: it is a synchronous standby.
    case serverRestored([StoreReference: Position], keepsAnswers: Bool = false)
    /// A node of several has read that the store is at this position.
    case read(StoreReference, Position)
    /// The server answers a push that has brought the store to this position, or found it there.
    case answered(StoreReference, Position)

    /// The device signed in: the folder belongs to the account from now on.
    case signedIn(device: Int, folder: String, account: Int)
    case cloned(device: Int, from: Int)
    /// The device's disks were copied, to be restored later.
    case copied(device: Int)
    /// The disk was replaced by an older copy.
    case lost(DiskReference)
    /// The disk was removed for good, with anything still written there.
    case wiped(DiskReference)

    /// The new state of a device's clocks: the error of the wall clock, and the millionths by which
    /// the uptime runs too fast.
    case clock(device: Int, error: Int64, drift: Int64, boot: UInt64)
    /// The new error of the server's clock.
    case serverClock(error: Int64)
    /// The device, or a process of it, was paused for this long.
    case paused(device: Int, milliseconds: Int64)
    /// A proxy delayed the first data of a stream for this long after it was requested.
    case keptBack(device: Int, milliseconds: Int64)

    /// Nothing has gone wrong for a long time.
    case settled(Settlement)

    /// The cause of a change that is visible to the app.
    package enum Cause: Sendable {
        case firstDownload
        case server
        case otherProcess
        /// A push was refused.
        case answer
        case account
    }
}

/// The complete state at the time when everything should agree.
package struct Settlement {
    package var server: [StoreReference: [Key: Record]]
    /// All increments that the server has ever folded.
    package var folded: [StoreReference: [FoldedIncrement]]
    package var processes: [Process]
    /// The keys of what a server can read of its sealed stores, or an older key opens.
    package var readable: [StoreReference: Set<Key>]

    package init(
        server: [StoreReference: [Key: Record]], folded: [StoreReference: [FoldedIncrement]] = [:],
        processes: [Process], readable: [StoreReference: Set<Key>] = [:]
    ) {
        self.server = server
        self.folded = folded
        self.processes = processes
        self.readable = readable
    }

    package struct Process {
        package var number: Int
        package var disk: DiskReference
        /// The account that the device is signed in to.
        package var account: Int?
        /// By record; parts have their own keys.
        package var values: [Key: PropertyListValue]
        package var waiting: Set<Key>
        package var isConnected: Bool
        package var onDisk: [Key: PropertyListValue]
        /// The visible values of keys with parts.
        package var merged: [Key: PropertyListValue]
        /// The store's report about its disk; nil if it has no problem.
        package var diskFailure: String?
        /// The keys of records of the server that it says it does not take.
        package var setAside: Set<Key> = []
        /// The number of wakes caused by time alone since the faults ended.
        package var wakes: Int
        /// The number of streams that it holds beside the one that it may have.
        package var streamsBeside: Int
        /// The number of round trips that have neither succeeded nor failed.
        package var tripsOpen: Int
        /// The number of calls of `synchronize()` that have not returned.
        package var questionsOpen: Int

        package init(
            number: Int, disk: DiskReference, account: Int?, values: [Key: PropertyListValue],
            waiting: Set<Key>, isConnected: Bool, onDisk: [Key: PropertyListValue],
            merged: [Key: PropertyListValue] = [:], diskFailure: String? = nil, wakes: Int = 0,
            streamsBeside: Int = 0, tripsOpen: Int = 0, questionsOpen: Int = 0,
            setAside: Set<Key> = []
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
            self.streamsBeside = streamsBeside
            self.tripsOpen = tripsOpen
            self.questionsOpen = questionsOpen
            self.setAside = setAside
        }
    }
}

/// A push that the server made durable.
package struct Commit {
    package var store: StoreReference
    package var before: [Key: Record]
    package var after: [Key: Record]
    package var position: Position
    package var push: Push
    package var results: [TransactionResult]
    package var writes: [Record]
    package var limits: StoreLimits
    package var serverMilliseconds: Int64
    package var newestCompacted: HybridTimestamp
    /// The increments that were folded, or were already folded and have changed; nil if the observer does
    /// not know.
    package var folded: [FoldedIncrement]?
    /// See ``PushAdmission/partsMax``.
    package var partsMax: Int
    /// Whether the account is sealed. The values are clear here, and the server has counted boxes,
    /// which may count less.
    package var isSealed = false
    /// Whether it is none: a device has sealed the whole store, which forgets deletions and its history.
    package var isWhole = false
    /// The keys of what a server can read of a sealed store, or an older key opens.
    package var readable: Set<Key> = []
    /// What a hostile server could pass off with what it has of a write.
    package var forgeries: [String] = []
    /// Whether it is a revision of its own.
    var isChange: Bool { isWhole || !writes.isEmpty }

    package init(
        store: StoreReference, before: [Key: Record], after: [Key: Record], position: Position,
        push: Push, results: [TransactionResult], writes: [Record], limits: StoreLimits,
        serverMilliseconds: Int64, newestCompacted: HybridTimestamp,
        folded: [FoldedIncrement]? = [], partsMax: Int = 60
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
        self.newestCompacted = newestCompacted
        self.folded = folded
        self.partsMax = partsMax
    }
}

/// One line, for following a run.
extension Observation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .opened(let process, let disk, let values):
            "process \(process) opens \(disk): \(text(values))"
        case .resumed(let process, let disk, let original):
            "process \(process) continues as \(original) on \(disk)"
        case .moved(let process, let disk): "process \(process) switches to \(disk)"
        case .ended(let process): "process \(process) ends"
        case .leads(let process, let leads):
            "process \(process) \(leads ? "has" : "has lost") the lease"
        case .wrote(let process, let writes):
            "process \(process) writes "
                + writes.map { "\($0.key)=\($0.value == nil ? "-" : "")\($0.number)" }
                .joined(separator: " ")
        case .merged(let act):
            "process \(act.process) does \(act.number) to \(act.key): \(act.act), and sees "
                + "\(act.seen.map { "\($0)" } ?? "nothing")"
        case .decided(let process, let key, let value):
            "process \(process) has decided \(key), and sees \(text(value))"
        case .refused(let process, let keys): "process \(process) is refused \(text(keys))"
        case .saves(let process, let entries, _):
            "process \(process) saves "
                + entries.sorted { $0.key < $1.key }.map { text($0) }.joined(separator: " ")
        case .synchronized(let process): "process \(process) has synchronized"
        case .endedSave(let process, let isRefused):
            isRefused
                ? "process \(process) could not save" : "the disk of process \(process) works"
        case .showsDisk(let process, let failure):
            "process \(process) says of its disk: \(failure.map { "\"\($0)\"" } ?? "nothing")"
        case .changed(let process, let keys, let cause):
            "process \(process) sees \(text(keys)) change: \(cause)"
        case .notified(let process, let notice, _):
            "process \(process) is notified of \(text(notice.keys)): \(notice.reason)"
        case .restedUnsaved(let process): "process \(process) rests, and has not saved everything"
        case .rested(let process, let values): "process \(process) rests: \(text(values))"
        case .withdrawn(let disk, let records):
            "\(disk) withdraws \(records.map { text($0) }.joined(separator: " "))"
        case .discarded(let disk, let keys): "\(disk) discards \(text(keys)) for its first sync"
        case .askedRoundTrip(let process, let id, _):
            "process \(process) asks for round trip \(id)"
        case .finishedRoundTrip(let process, let id, _, _):
            "process \(process) has finished round trip \(id)"
        case .opensStream(let process): "process \(process) opens a stream"
        case .pulls(let process): "process \(process) pulls"
        case .betrays(let process, let keys):
            "process \(process) dates \(text(keys)) in the future"
        case .pushes(let process, let push, _, _):
            "process \(process) pushes "
                + push.transactions.map { $0.writes.map { text($0) }.joined(separator: "+") }
                .joined(separator: " ")
        case .received(let process, _, let position, _, let own):
            "process \(process) has come to \(position.cursor), but for its own \(text(own))"
        case .tells(let process, _, let position, _, let own):
            "process \(process) says it has saved \(position.cursor), but for its own \(text(own))"
        case .committed(let commit):
            "\(commit.store) has \(commit.isWhole ? "been sealed as" : "committed") "
                + "\(commit.position.cursor): "
                + commit.writes.map { text($0) }.joined(separator: " ")
        case .compacted(let store, let records, let left, _):
            "\(store) has forgotten \(records.map { text($0) }.joined(separator: " ")), and "
                + "remembers \(left)"
        case .kept(let view): "\(view.store) has \(view.lines.count) versions"
        case .serverRestored(_, let keepsAnswers):
            "the server is an older copy of itself\(keepsAnswers ? ", a standby" : "")"
        case .read(let store, let position): "\(store) is read: \(position.cursor)"
        case .answered(let store, let position): "\(store) is answered: \(position.cursor)"
        case .signedIn(let device, let folder, let account):
            "device \(device) signs in to account \(account), folder \(folder)"
        case .cloned(let device, let original): "device \(device) is a clone of \(original)"
        case .copied(let device): "the disks of device \(device) are copied"
        case .lost(let disk): "\(disk) is an older copy of itself"
        case .wiped(let disk): "\(disk) is wiped"
        case .clock(let device, let error, let drift, let boot):
            "device \(device) has clocks: \(error) ms wrong, \(drift) ppm too fast, boot "
                + "\(boot % 1_000)"
        case .serverClock(let error): "the server's clock is \(error) ms wrong"
        case .paused(let device, let milliseconds):
            "device \(device) stood still for \(milliseconds) ms"
        case .keptBack(let device, let milliseconds):
            "device \(device) had a stream held back for \(milliseconds) ms"
        case .settled: "all should agree"
        }
    }

    private func text(_ keys: Set<Key>) -> String { keys.sorted().description }

    /// The key, the confirmed record and, after an arrow, the pending write, with a question mark
    /// if its stamp is provisional.
    private func text(_ entry: StoredEntry) -> String {
        let confirmed = entry.confirmed.map { text($0) } ?? "\(entry.key)=nothing"
        guard let pending = entry.pending else { return confirmed }
        return "\(confirmed)<-\(text(pending.record))" + (pending.provisional == nil ? "" : "?")
    }

    private func text(_ record: Record) -> String {
        let mark = text(record.content.value)
        let stamp = record.stamp.timestamp
        return "\(record.key)=\(mark)@\(stamp.milliseconds % 10_000_000).\(stamp.counter)"
    }

    private func text(_ values: [Key: PropertyListValue]) -> String {
        values.sorted { $0.key < $1.key }.map { "\($0.key)=\(text($0.value))" }
            .joined(separator: " ")
    }

    private func text(_ value: PropertyListValue?) -> String {
        guard let value else { return "-" }
        return Mark(value).map { "\($0.number)" } ?? "\(value)"
    }
}
