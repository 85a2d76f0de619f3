// SPDX-License-Identifier: Apache-2.0

// The property lists that cross between the engine and its shell.

extension Driver.Event {
    /// Nil for a word that is none of these.
    init?(_ word: ExactString, _ fields: StoredFields) throws(StoredFieldError) {
        switch word {
        case "saved": self = .engine(.saved(version: try fields.number("version")))
        case "conflict": self = .engine(.saveConflicted(try fields.content()))
        case "notSaved": self = .engine(.saveFailed(try fields.reason()))
        case "fileChanged": self = .fileSignalled
        case "read": self = .fileRead(try fields["content"] == nil ? nil : fields.content())
        case "notRead": self = .fileUnreadable(try fields.reason())
        case "leading":
            self = .leading(
                file: Int(clamping: try fields.number("file")),
                try fields.boolean("isLeading") ?? false)
        case "accountChanged": self = .accountSignalled
        case "account":
            guard let state = fields["device"] else { throw .missing("device") }
            self = .accountRead(try DeviceState(fields: state))
        case "noAccount": self = .accountUnreadable(try fields.reason())
        case "opened": self = .opened(try fields.content())
        case "notOpened": self = .unopened(try fields.reason())
        case "notWatched": self = .unwatched(try fields.reason())
        case "notified": self = .engine(.notified)
        case "hurry": self = .engine(.hurry)
        case "synchronize": self = .synchronize
        case "close": self = .close
        default: return nil
        }
    }
}

extension Notice.Reason {
    var word: String {
        switch self {
        case .serverChange: "serverChange"
        case .initialSync: "initialSync"
        case .quotaViolation: "quotaViolation"
        case .accountChange: "accountChange"
        case .ownWrite: "ownWrite"
        }
    }
}

extension StoredFields {
    func number(_ name: ExactString) throws(StoredFieldError) -> Int64 {
        try Self.need(integer(name), name)
    }

    /// Why something failed: never empty, so that no failure looks like none.
    func reason() throws(StoredFieldError) -> String {
        let why = try text("why")
        return why.isEmpty ? "no reason was given" : why
    }

    func data(_ name: ExactString) throws(StoredFieldError) -> [UInt8]? {
        guard let value = self[name] else { return nil }
        guard case .data(let bytes) = value else { throw .otherType(name.string) }
        return bytes
    }

    func keys(_ name: ExactString) throws(StoredFieldError) -> [Key] {
        var keys: [Key] = []
        for value in try array(name) ?? [] {
            guard case .string(let text) = value, let key = try? Key(text.string) else {
                throw .otherType(name.string)
            }
            keys.append(key)
        }
        return keys
    }

    func content() throws(StoredFieldError) -> DiskChanges {
        try DiskChanges(Self.need(fields("content"), "content"))
    }
}

extension PropertyListValue {
    /// An event or a step.
    static func word(_ word: String, _ fields: [ExactString: PropertyListValue?] = [:]) -> Self {
        var fields = fields
        fields["do"] = .some(.string(word))
        return .fields(fields)
    }

    static func cancel(_ request: Int) -> Self {
        .word("cancel", ["id": .integer(Int64(request))])
    }

    /// How long a stream may be silent, by what its server has announced.
    static func patience(of request: Int, _ config: ServerConfig) -> Self {
        let milliseconds = IdleTimeout.streamMilliseconds(keepAliveSeconds: config.keepAliveSeconds)
        return .word(
            "patience",
            ["id": .integer(Int64(request)), "milliseconds": .integer(milliseconds)])
    }

    static func keys(_ keys: Set<Key>) -> Self { .array(keys.inOrder().map { .string($0.name) }) }

    /// An entry as the harness names it.
    static func entry(_ key: Key, _ value: PropertyListValue?) -> Self {
        .fields([
            "key": .string(key.name), "part": key.part.map { .string($0.text) }, "value": value,
        ])
    }

    /// - Throws: ``StoredFieldError`` for bytes that are not a property list.
    static func decoded(_ bytes: [UInt8]) throws(StoredFieldError) -> Self {
        // A value of the deepest nesting, within the words around it.
        do throws(PropertyListError) {
            return try BinaryPropertyList.decode(bytes, depthMax: depthMax + 8)
        } catch { throw .otherForm }
    }
}

extension Int64 {
    /// A clock's reading, whatever the shell says.
    init(bounded milliseconds: Double) {
        let limit = 9e15
        self = milliseconds.isNaN ? 0 : Int64(Swift.min(Swift.max(milliseconds, -limit), limit))
    }
}
