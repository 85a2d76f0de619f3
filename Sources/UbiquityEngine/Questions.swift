// SPDX-License-Identifier: Apache-2.0

// What an app wants to see, which changes nothing.

extension Engine {
    var status: PropertyListValue {
        let status = driver.status
        let link = status.link
        return .fields([
            "connection": .string(status.connection.rawValue),
            "explanation": .string(status.explanation),
            "account": driver.signedIn.map { .string($0.accountName) },
            "accountID": driver.signedIn.map { .string($0.account) },
            "lastError": link.lastError.map { .string($0) },
            "lastSync": link.lastSync.map { .integer($0) },
            "nextRetry": link.nextRetry.map { .integer($0) },
            "pendingKeys": .keys(status.pendingKeys),
            "setAsideKeys": .keys(status.setAside.keys),
            "isInitialSyncComplete": .boolean(status.hasCompletedFirstSync),
            "diskError": status.diskFailure.map { .string($0) },
            "isLeader": .boolean(status.isLeading), "isHeldUp": .boolean(status.isHeldUp),
            "usage": .fields([
                "bytes": .integer(Int64(status.usage.bytes)),
                "keys": .integer(Int64(status.usage.keys)),
            ]),
            "limits": status.limits.words,
            "saved": status.isLeading
                ? driver.engine.savedCursor.map { .string($0.text) } : nil,
        ])
    }

    /// The keys with a value in their order; of each, the bytes that it counts with all of its parts, and
    /// the time and the author of its last write.
    var keys: PropertyListValue {
        var all: [Key: (usage: Usage, last: Stamp?)] = [:]
        for (key, entry) in driver.engine.entries.all {
            guard let record = entry.pending?.record ?? entry.confirmed,
                let value = record.content.value
            else { continue }
            var (usage, last) = all[key.whole] ?? (Usage(), nil)
            usage.replace(nil, by: value, of: key)
            if last.map({ $0 < record.stamp }) ?? true { last = record.stamp }
            all[key.whole] = (usage, last)
        }
        let keys = driver.engine.values.keys.inOrder()
        return .fields([
            "keys": .array(keys.map { .string($0.name) }),
            "bytes": .array(keys.map { .integer(Int64(all[$0]?.usage.bytes ?? 0)) }),
            "milliseconds": .array(
                keys.map { .integer(all[$0]?.last?.timestamp.milliseconds ?? 0) }),
            "devices": .array(keys.map { .author(all[$0]?.last?.device ?? .unassigned) }),
        ])
    }

    /// The refused writes of a disk's rows, and the rows that stay when the app has dealt with them.
    func refused(_ event: StoredFields) throws(StoredFieldError) -> PropertyListValue {
        var (refused, rest): ([PropertyListValue], [PropertyListValue]) = ([], [])
        for row in try event.array("rows") ?? [] {
            let write = try RefusedWrite(row: row)
            if write.isSuperseded {
                rest.append(row)
            } else if let version = KeyVersion(write.record, .refused(write.refusal)) {
                refused.append(version.fields)
            }
        }
        return .fields(["refused": .array(refused), "rest": .array(rest)])
    }
}

extension PropertyListValue {
    /// Empty if nobody was signed in.
    static func author(_ device: DeviceID) -> Self {
        .string(device == .unassigned ? "" : device.description)
    }
}

extension EngineStatus {
    /// A device without the account's key, which sends nothing.
    var isLocked: Bool { connection == .locked }

    fileprivate var connection: LinkStatus.State {
        if !isSignedIn { return .signedOut }
        // Signed in a moment ago, and not connected yet.
        return link.state == .signedOut ? .connecting : link.state
    }

    /// Why the store syncs, or does not.
    fileprivate var explanation: String {
        setAside.isEmpty ? state : "\(state) Not everything is synced: \(setAside.sentence)."
    }

    private var state: String {
        if let diskFailure { return "The disk refuses to save: \(diskFailure)." }
        if isHeldUp {
            return "Another process of this device holds the connection and does not respond."
        }
        let why = link.lastError ?? ""
        return switch connection {
        case .signedOut: "Nobody is signed in: values stay on this device until somebody is."
        case .connecting: "Connecting."
        case .connected:
            why.isEmpty
                ? "Connected." : "Connected, but changes of this device are not taken: \(why)."
        case .polling:
            "Connected without a stream, and asks now and then\(why.isEmpty ? "" : ": ")\(why)."
        case .unauthorized: "The server refuses this device: \(why). Sign in again."
        case .locked: "T\(String(LinkStatus.lockedReason.unicodeScalars.dropFirst()))."
        case .waiting: "Not connected: \(why.isEmpty ? "not tried yet" : why)."
        }
    }
}

extension StoreLimits {
    fileprivate var words: PropertyListValue {
        var (bytes, units) = (0, 0)
        switch key {
        case .utf8Bytes(let max): bytes = max
        case .utf16Units(let max): units = max
        }
        return .fields([
            "storeBytesMax": .integer(Int64(storeBytesMax)), "keysMax": .integer(Int64(keysMax)),
            "valueBytesMax": .integer(Int64(valueBytesMax)),
            "pushBytesMax": .integer(Int64(pushBytesMax)),
            "keyBytesMax": .integer(Int64(bytes)), "keyUtf16Max": .integer(Int64(units)),
        ])
    }
}

extension LinkFailure {
    /// For programs: the server's, or what kind of failure it is.
    var word: String {
        if let code { return code }
        return switch kind {
        case .unreachable: "unreachable"
        case .timedOut: "timedOut"
        case .unauthorized: "unauthorized"
        case .refused: "refused"
        case .tooLarge: "tooLarge"
        case .cursorGone: "cursorGone"
        case .clockAhead: "clockAhead"
        case .sealed: "sealed"
        case .busy: "busy"
        case .tooManyStreams: "tooManyStreams"
        }
    }
}
