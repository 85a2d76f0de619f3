// SPDX-License-Identifier: Apache-2.0

extension Driver {
    /// Something to do. A step whose case names an event is under way until that event.
    package enum Step: Hashable, Sendable {
        /// Calls the app's own rules: ``SyncEngine/takeConflict()``, until there is none.
        case decide
        /// Finished by the events that the effect's case names.
        case effect(SyncEngine.Effect)
        /// Reads what other processes saved: ``Event/fileRead(_:)`` or
        /// ``Event/fileUnreadable(_:)``.
        case read(after: Int64)
        /// Reads the device's sign-in: ``Event/accountRead(_:)`` or ``Event/accountUnreadable(_:)``.
        case readAccount
        /// Keeps on the disk that the account of this identifier is sealed, see
        /// ``DeviceState/sealedAccounts``, and then reads the sign-in, with the same events.
        case noteSealed(account: ExactString)
        /// Directs the following effects to the server of this account. All requests for the store
        /// name the number of the key that the device has; 0 for none.
        case connect(SignedInAccount, DeviceID, generation: UInt32)
        /// Opens the store's file in another folder, beside the one in use: ``Event/opened(_:)`` or
        /// ``Event/unopened(_:)``.
        case open(folder: String)
        /// Closes the file that was opened last: the device has switched to another account.
        case release
        /// Replaces the file in use and its connection with the file opened last, or with none if
        /// that failed. Watches it and waits for its lease. From now on it has this number.
        case use(file: Int)
        /// Tells the callers of ``Event/synchronize`` whether memory and disk agree.
        case synchronized(Bool)
        /// Reports an error to the observers of errors: of the disk, or of what the server has.
        case report(String, isOfServer: Bool = false)
        /// Closes everything. The last step.
        case close

        /// Whether the step is under way until an event.
        var isAnswered: Bool {
            switch self {
            case .effect(.save), .read, .readAccount, .noteSealed, .open: true
            case .decide, .effect, .connect, .release, .use, .synchronized, .report, .close: false
            }
        }
    }

    package enum Event: Hashable, Sendable {
        /// The outcome of an effect.
        case engine(SyncEngine.Event)
        /// Another process may have saved.
        case fileSignalled
        /// Nil if nothing is new.
        case fileRead(DiskChanges?)
        case fileUnreadable(String)
        /// Whether this process now holds the lease of the file with this number.
        case leading(file: Int, Bool)
        /// The device's sign-in may have changed.
        case accountSignalled
        case accountRead(DeviceState)
        case accountUnreadable(String)
        /// The complete content of the file that was to be opened.
        case opened(DiskChanges)
        case unopened(String)
        /// The file in use cannot be watched.
        case unwatched(String)
        /// Brings memory and disk together and hurries the sync: ``Step/synchronized(_:)``.
        case synchronize
        /// Saves what is unsaved and ends: ``Step/close``.
        case close
    }

    /// A read that is made whenever its source may have changed, and is retried after a failure.
    struct Attempt: Hashable, Sendable {
        private(set) var isWanted = false
        /// The error of the last attempt; nil if it succeeded.
        var failure: String?
        private var backoff = Backoff()
        private(set) var retryAt: Int64?

        init(isWanted: Bool) { self.isWanted = isWanted }

        /// Requests an attempt now, regardless of when the last one was.
        mutating func want() {
            isWanted = true
            retryAt = nil
        }

        func isDue(at now: ClockReading) -> Bool { isWanted && now.uptime >= retryAt ?? .min }

        /// - Returns: Whether to make the attempt now.
        mutating func begin(at now: ClockReading) -> Bool {
            guard isDue(at: now) else { return false }
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
