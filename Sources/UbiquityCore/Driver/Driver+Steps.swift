// SPDX-License-Identifier: Apache-2.0

extension Driver {
    /// Something to be done. A step whose case names an event is under way until that event.
    package enum Step: Hashable, Sendable {
        /// Answered as the effect's case says.
        case effect(SyncEngine.Effect)
        /// Reads what other processes saved: ``Event/fileRead(_:)`` or ``Event/fileUnreadable(_:)``.
        case read(after: Int64)
        /// Reads the device's sign-in: ``Event/accountRead(_:)`` or ``Event/accountUnreadable(_:)``.
        case readAccount
        /// Has the effects that follow go to the server of this account.
        case connect(SignedInAccount, DeviceID)
        /// Opens the store's file in another folder, besides the one in use: ``Event/opened(_:)`` or
        /// ``Event/unopened(_:)``.
        case open(folder: String)
        /// Lets go of the file that was opened last: the device has turned elsewhere.
        case letGo
        /// Lets go of the file in use, and of its connection, for the one that was opened last, or for
        /// none if that failed: watches it, and waits for its lease. From now on it has this number.
        case use(file: Int)
        /// Tells those who asked for ``Event/synchronize`` whether memory and disk agree.
        case synchronized(Bool)
        /// Tells who listens for errors.
        case report(String)
        /// Lets go of everything. The last step.
        case close

        /// Whether it is under way until an event.
        var isAnswered: Bool {
            switch self {
            case .effect(.save), .read, .readAccount, .open: true
            case .effect, .connect, .letGo, .use, .synchronized, .report, .close: false
            }
        }
    }

    package enum Event: Hashable, Sendable {
        /// What answers an effect.
        case engine(SyncEngine.Event)
        /// Another process may have saved.
        case fileSignalled
        /// Nil: nothing new.
        case fileRead(DiskChanges?)
        case fileUnreadable(String)
        /// This process has the lease of the file of this number, or not any more.
        case leading(file: Int, Bool)
        /// The device's sign-in may be another one.
        case accountSignalled
        case accountRead(DeviceState)
        case accountUnreadable(String)
        /// Everything in the file that was to be opened.
        case opened(DiskChanges)
        case unopened(String)
        /// The file in use cannot be watched.
        case unwatched(String)
        /// Brings memory and disk together, and hurries the sync: ``Step/synchronized(_:)``.
        case synchronize
        /// Saves what is unsaved, and ends: ``Step/close``.
        case close
    }

    /// Something that is read when it may have changed, and again after a while where that failed.
    struct Attempt: Hashable, Sendable {
        private(set) var isWanted = false
        /// Why it failed the last time; nil: it did not.
        var failure: String?
        private var backoff = Backoff()
        private(set) var retryAt: Int64?

        init(isWanted: Bool) { self.isWanted = isWanted }

        /// At once, whenever the last one was.
        mutating func want() {
            isWanted = true
            retryAt = nil
        }

        /// - Returns: Whether it is to be made now.
        mutating func begin(at now: ClockReading) -> Bool {
            guard isWanted, now.uptime >= retryAt ?? .min else { return false }
            isWanted = false
            retryAt = nil
            return true
        }

        mutating func succeed() {
            failure = nil
            backoff.succeed()
        }

        mutating func fail(
            _ reason: String, at now: ClockReading, using random: inout RandomSource
        ) {
            failure = reason
            isWanted = true
            retryAt = now.uptime + backoff.fail(using: &random)
        }
    }
}
