// SPDX-License-Identifier: Apache-2.0

/// The device's stored state besides the keys.
package struct StoredMeta: Hashable, Sendable {
    /// The account that the cursor belongs to; nil before the first sign-in.
    @Exact package var account: String? = nil
    package var cursor: Cursor?
    package var hasCompletedFirstSync = false
    /// The number of the newest key of the account that this device has had, 1 if it only knows that the
    /// account is sealed, and 0 if it does not. A process without that key sends nothing.
    package var generation: UInt32 = 0
    /// The number of the key that sealed what is agreed with the server.
    package var agreedGeneration: UInt32 = 0
    package var setAside = SetAside()
    package var correction: ClockCorrection?
    package var limits = StoreLimits()
    package var allowance = Allowance()
    /// A follower asks the leader for a round trip by incrementing the first number. The leader
    /// answers by raising the second to it.
    package var syncsRequested: Int64 = 0
    package var syncsCompleted: Int64 = 0
    /// The last request that the leader has seen.
    package var syncsTaken: Int64 = 0
    /// Counts the leaders: each writes a greater number than it found, together with the first of
    /// what it has received. A process that finds a greater one than it wrote leads no longer,
    /// though nobody has told it.
    package var term: Int64 = 0
    /// The failed round trips that followers asked for: the newest ``SyncFailure/countMax``, in
    /// order.
    package var syncFailures: [SyncFailure] = []
    package var link = LinkStatus()

    package init() {}
}

/// The reason a round trip failed that a follower asked for.
package struct SyncFailure: Hashable, Sendable {
    /// The numbers of the requests, see ``StoredMeta/syncsRequested``.
    package var numbers: ClosedRange<Int64>
    @Exact package var detail: String
    /// At most ``keysMax`` of ``LinkFailure/refusedKeys``.
    package var refusedKeys: Set<Key>

    package static let countMax = 8
    package static let keysMax = 100

    package init(_ numbers: ClosedRange<Int64>, _ failure: LinkFailure) {
        self.numbers = numbers
        detail = failure.detail
        refusedKeys = Set(failure.refusedKeys.inOrder().prefix(Self.keysMax))
    }

    var failure: LinkFailure {
        LinkFailure(refusedKeys.isEmpty ? .unreachable : .refused, detail, refusedKeys: refusedKeys)
    }
}

/// The state of the connection to the server, for people and for processes that do not hold it.
package struct LinkStatus: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable {
        case signedOut, connecting, connected, waiting, unauthorized
        /// The account is sealed, and this device does not have its key.
        case locked
        /// There is no stream, but requests are answered: the device polls.
        case polling
    }

    package var state = State.signedOut
    /// Milliseconds since 1970 when device and server last agreed; nil means never.
    package var lastSync: Int64?
    /// A sentence about the last error; nil after a success.
    @Exact package var lastError: String? = nil
    /// Milliseconds since 1970, by the device's clock.
    package var nextRetry: Int64?

    package init() {}

    /// What ``State/locked`` says of a device, in whatever program.
    package static let locked = "the account is sealed, and this device does not have its key"
    /// The error of ``State/locked``.
    package static let lockedReason =
        locked + ": unlock it with a code that another device approves, or with the recovery key"
}

/// The form on disk: a dictionary. Nil fields are omitted, and an omitted field has its initial
/// value.
extension StoredMeta {
    package var fields: PropertyListValue {
        .fields([
            "account": account.map { .string($0) },
            "cursor": cursor.map { .string($0.text) },
            "hasCompletedFirstSync": .boolean(hasCompletedFirstSync),
            "generation": generation == 0 ? nil : .integer(Int64(generation)),
            "agreedGeneration": agreedGeneration == 0 ? nil : .integer(Int64(agreedGeneration)),
            "setAside": setAside.fields,
            "correction": correction?.fields,
            "limits": limits.fields,
            "allowance": allowance.fields,
            "syncsRequested": .integer(syncsRequested),
            "syncsCompleted": .integer(syncsCompleted),
            "syncsTaken": .integer(syncsTaken),
            "term": .integer(term),
            "syncFailures": syncFailures.isEmpty ? nil : .array(syncFailures.map { $0.fields }),
            "link": link.fields,
        ])
    }

    /// - Throws: ``StoredFieldError`` if the value has another form.
    package init(fields value: PropertyListValue) throws(StoredFieldError) {
        let fields = try StoredFields(value)
        account = try fields.string("account")
        if let text = try fields.string("cursor") {
            guard let known = Cursor(text) else { throw .otherType("cursor") }
            cursor = known
        }
        hasCompletedFirstSync = try fields.boolean("hasCompletedFirstSync") ?? false
        generation = try fields.integer("generation") ?? 0
        agreedGeneration = try fields.integer("agreedGeneration") ?? 0
        if let setAside = try fields.fields("setAside") { self.setAside = try SetAside(setAside) }
        if let correction = try fields.fields("correction") {
            self.correction = try ClockCorrection(correction)
        }
        if let limits = try fields.fields("limits") { self.limits = try StoreLimits(limits) }
        if let allowance = try fields.fields("allowance") {
            self.allowance = try Allowance(allowance)
        }
        syncsRequested = try fields.integer("syncsRequested") ?? 0
        syncsCompleted = try fields.integer("syncsCompleted") ?? 0
        syncsTaken = try fields.integer("syncsTaken") ?? 0
        term = try fields.integer("term") ?? 0
        for failure in try fields.array("syncFailures") ?? [] {
            syncFailures.append(try SyncFailure(StoredFields(failure)))
        }
        if let link = try fields.fields("link") { self.link = try LinkStatus(link) }
    }
}

extension SyncFailure {
    fileprivate var fields: PropertyListValue {
        .fields([
            "first": .integer(numbers.lowerBound), "last": .integer(numbers.upperBound),
            "detail": .string(ExactString(detail)),
            "refused": refusedKeys.isEmpty
                ? nil : .array(refusedKeys.inOrder().map { .string($0.name) }),
        ])
    }

    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        let first: Int64 = try StoredFields.need(fields.integer("first"), "first")
        let last: Int64 = try StoredFields.need(fields.integer("last"), "last")
        guard first <= last else { throw .otherType("last") }
        var failure = LinkFailure(.unreachable, try fields.text("detail"))
        for name in try fields.array("refused") ?? [] {
            guard case .string(let name) = name, let key = try? Key(name.string) else {
                throw .otherType("refused")
            }
            failure.refusedKeys.insert(key)
        }
        self.init(first...last, failure)
    }
}

extension ClockCorrection {
    fileprivate var fields: PropertyListValue {
        .fields([
            "wall": .integer(reading.wall), "uptime": .integer(reading.uptime),
            "boot": .init(unsigned: reading.boot), "server": .integer(serverMilliseconds),
            "doubt": .integer(doubt),
        ])
    }

    /// An incomplete reading is an error.
    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        self.init(
            reading: ClockReading(
                wall: try StoredFields.need(fields.integer("wall"), "wall"),
                uptime: try StoredFields.need(fields.integer("uptime"), "uptime"),
                boot: try StoredFields.need(fields.integer("boot"), "boot")),
            serverMilliseconds: try StoredFields.need(fields.integer("server"), "server"),
            doubt: try StoredFields.need(fields.integer("doubt"), "doubt"))
    }
}

extension StoreLimits {
    var fields: PropertyListValue {
        var (bytes, units): (Int?, Int?)
        switch key {
        case .utf8Bytes(let max): bytes = max
        case .utf16Units(let max): units = max
        }
        return .fields([
            "storeBytes": .integer(Int64(storeBytesMax)), "keys": .integer(Int64(keysMax)),
            "valueBytes": .integer(Int64(valueBytesMax)),
            "keyBytes": bytes.map { .integer(Int64($0)) },
            "keyUnits": units.map { .integer(Int64($0)) },
            "pushBytes": .integer(Int64(pushBytesMax)),
        ])
    }

    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        self.init()
        storeBytesMax = try fields.integer("storeBytes") ?? storeBytesMax
        keysMax = try fields.integer("keys") ?? keysMax
        valueBytesMax = try fields.integer("valueBytes") ?? valueBytesMax
        pushBytesMax = try fields.integer("pushBytes") ?? pushBytesMax
        if let bytes: Int = try fields.integer("keyBytes") { key = .utf8Bytes(bytes) }
        if let units: Int = try fields.integer("keyUnits") { key = .utf16Units(units) }
    }
}

extension Allowance {
    fileprivate var fields: PropertyListValue {
        .fields(["burst": .integer(Int64(burst)), "perSecond": .real(perSecond)])
    }

    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        let begin = Allowance()
        self.init(
            burst: try fields.integer("burst") ?? begin.burst,
            perSecond: try fields.real("perSecond") ?? begin.perSecond)
    }
}

extension LinkStatus {
    var fields: PropertyListValue {
        .fields([
            "state": .string(ExactString(state.rawValue)),
            "lastSync": lastSync.map { .integer($0) },
            "lastError": lastError.map { .string($0) },
            "nextRetry": nextRetry.map { .integer($0) },
        ])
    }

    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        self.init()
        state = try fields.choice("state") ?? state
        lastSync = try fields.integer("lastSync")
        lastError = try fields.string("lastError")
        nextRetry = try fields.integer("nextRetry")
    }
}

extension PropertyListValue {
    /// A dictionary of those that are not nil.
    static func fields(_ fields: [ExactString: PropertyListValue?]) -> Self {
        .dictionary(fields.compactMapValues { $0 })
    }
}
