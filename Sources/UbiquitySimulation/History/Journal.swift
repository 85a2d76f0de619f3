// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Records a run, and passes it on to the checkers.
package final class Journal {
    package struct Violation: Hashable, Sendable {
        /// The checker's name.
        package var checker: String
        /// A sentence.
        package var complaint: String
        /// Milliseconds since the run began.
        package var time: Int64

        package init(checker: String, complaint: String, time: Int64) {
            (self.checker, self.complaint, self.time) = (checker, complaint, time)
        }
    }

    package private(set) var history = History()
    package private(set) var violation: Violation?
    /// The number of times that each fault struck.
    package private(set) var faults: [Fault: Int] = [:]
    package private(set) var digest = Digest()
    private let checkers: [any Checker]
    private let clock: TrueTime
    private let start: Int64

    private let watching: ((Observation, Int64) -> Void)?

    package init(
        checkers: [any Checker], clock: TrueTime,
        watching: ((Observation, Int64) -> Void)? = nil
    ) {
        self.watching = watching
        self.checkers = checkers
        self.clock = clock
        start = clock.now
    }

    package func note(_ observation: Observation) {
        digest.combine(observation, at: clock.now)
        history.note(observation)
        watching?(observation, clock.now - start)
        for checker in checkers where violation == nil {
            guard let complaint = checker.check(observation, history) else { continue }
            violation = Violation(
                checker: "\(type(of: checker))", complaint: complaint, time: clock.now - start)
        }
    }

    package func count(_ fault: Fault) {
        faults[fault, default: 0] += 1
        digest.combine(clock.now)
    }
}

/// Checks one promise. It knows what apps did and saw, and what the server made durable, and infers
/// from that alone what must hold. It shares no rule with the code that it checks.
package protocol Checker: AnyObject {
    /// - Returns: A sentence if the promise was broken.
    func check(_ observation: Observation, _ history: History) -> String?
}

/// The history so far, for all checkers.
package struct History {
    package private(set) var writes: [Int: AppWrite] = [:]
    /// The account that each folder of a device belongs to, or came to belong to.
    package private(set) var owners: [Folder: Int] = [:]
    /// The original of each cloned device.
    package private(set) var originals: [Int: Int] = [:]

    package struct Folder: Hashable, Sendable {
        package var device: Int
        package var folder: String

        package init(_ device: Int, _ folder: String) {
            self.device = device
            self.folder = folder
        }
    }

    /// The disk that each process has open.
    package private(set) var disks: [Int: DiskReference] = [:]

    package init() {}

    /// The app's write in a record; nil for a deletion, and for a part.
    func write(of record: Record) -> AppWrite? {
        Mark(record.content.value).flatMap { writes[$0.number] }
    }

    /// The accounts that may have writes made there: a clone may have taken them along before
    /// anybody signed in.
    package func owners(ofWritesOn disk: DiskReference) -> Set<Int> {
        let devices = [disk.device] + clones(of: disk.device)
        return Set(devices.compactMap { owners[Folder($0, disk.folder)] })
    }

    /// The device that this one is a direct or indirect clone of, or the device itself.
    package func original(of device: Int) -> Int { originals[device].map(original) ?? device }

    /// Including clones of clones.
    private func clones(of device: Int) -> [Int] {
        originals.keys.filter { $0 != device && isClone($0, of: device) }
    }

    private func isClone(_ device: Int, of original: Int) -> Bool {
        guard let parent = originals[device] else { return false }
        return parent == original || isClone(parent, of: original)
    }

    package func owner(of disk: DiskReference) -> Int? { owners[Folder(disk.device, disk.folder)] }

    mutating func note(_ observation: Observation) {
        switch observation {
        case .wrote(_, let writes): for write in writes { self.writes[write.number] = write }
        case .opened(let process, let disk, _), .moved(let process, let disk),
            .resumed(let process, let disk, _):
            disks[process] = disk
        case .ended(let process): disks[process] = nil
        case .signedIn(let device, let folder, let account):
            owners[Folder(device, folder)] = account
        case .cloned(let device, let original):
            originals[device] = original
            for (folder, account) in owners where folder.device == original {
                owners[Folder(device, folder.folder)] = account
            }
        default: break
        }
    }
}
