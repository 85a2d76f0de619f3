// SPDX-License-Identifier: Apache-2.0

// The rows that a shell keeps on its disk: bytes, which only the engine reads.

extension SaveBatch {
    /// An entry without bytes has nothing; the row stays only for processes that have known the key.
    var fields: [ExactString: PropertyListValue?] {
        [
            "expects": .integer(expectedVersion),
            "entries": .rows(entries),
            "meta": meta.map { .data(BinaryPropertyList.encode($0.fields)) },
            "refused": refused.isEmpty ? nil : .array(refused.map { .data($0.row) }),
        ]
    }
}

extension DiskChanges {
    init(_ fields: StoredFields) throws(StoredFieldError) {
        self.init(version: try fields.number("version"))
        entries = try fields.rows("entries")
        if let bytes = try fields.data("meta") { meta = try StoredMeta(fields: .decoded(bytes)) }
    }
}

extension PropertyListValue {
    static func rows(_ entries: [StoredEntry]) -> Self {
        .array(
            entries.map { entry in
                .fields(["key": .data(entry.key.bytes), "entry": entry.row.map { .data($0) }])
            })
    }
}

extension StoredFields {
    func rows(_ name: ExactString) throws(StoredFieldError) -> [StoredEntry] {
        let rows = try array(name) ?? []
        var entries: [StoredEntry] = []
        entries.reserveCapacity(rows.count)
        for row in rows { entries.append(try StoredEntry(row: StoredFields(row))) }
        return entries
    }
}

extension StoredEntry {
    fileprivate var row: [UInt8]? {
        guard confirmed != nil || pending != nil else { return nil }
        return BinaryPropertyList.encode(
            .array([.row(confirmed?.row), .row(pending?.row), .boolean(wasUnkept)]))
    }

    fileprivate init(row: StoredFields) throws(StoredFieldError) {
        guard let bytes = try row.data("key") else { throw .missing("key") }
        guard let key = bytes.withUnsafeBytes({ try? Key(bytes: $0) }) else {
            throw .otherType("key")
        }
        self.init(key: key)
        guard let bytes = try row.data("entry") else { return }
        var row = try Row(.decoded(bytes))
        if var record = try row.row() { confirmed = try Record(key: key, row: &record) }
        if var write = try row.row() { pending = try PendingWrite(key: key, row: &write) }
        wasUnkept = try row.flag()
    }
}

extension PendingWrite {
    fileprivate var row: [PropertyListValue] {
        let made = provisional.map { provisional in
            [
                PropertyListValue.integer(provisional.madeAt.wall),
                .integer(provisional.madeAt.uptime), .init(unsigned: provisional.madeAt.boot),
                .init(unsigned: provisional.seen.rawValue),
            ]
        }
        return [
            .row(record.row), .init(unsigned: transaction), .row(had?.row), .row(made),
            .boolean(isUnkept), .init(unsigned: UInt64(generation)),
        ]
    }

    fileprivate init(key: Key, row: inout Row) throws(StoredFieldError) {
        guard var record = try row.row() else { throw Row.otherForm }
        self.init(
            record: try Record(key: key, row: &record), transaction: try row.unsigned())
        if var stamp = try row.row() { had = try Stamp(row: &stamp) }
        if var made = try row.row() {
            provisional = ProvisionalStamp(
                madeAt: ClockReading(
                    wall: try made.integer(), uptime: try made.integer(),
                    boot: try made.unsigned()),
                seen: HybridTimestamp(rawValue: try made.unsigned()))
        }
        isUnkept = try row.flag()
        generation = UInt32(clamping: try row.unsigned())
    }
}

extension Record {
    /// A deletion has no value.
    fileprivate var row: [PropertyListValue] { stamp.row + (content.value.map { [$0] } ?? []) }

    fileprivate init(key: Key, row: inout Row) throws(StoredFieldError) {
        let stamp = try Stamp(row: &row)
        self.init(key: key, content: row.rest().map(Content.value) ?? .deleted, stamp: stamp)
    }
}

extension Stamp {
    fileprivate var row: [PropertyListValue] {
        [
            .init(unsigned: timestamp.rawValue), .init(unsigned: device.rawValue),
            .init(unsigned: digest),
        ]
    }

    fileprivate init(row: inout Row) throws(StoredFieldError) {
        self.init(
            HybridTimestamp(rawValue: try row.unsigned()), DeviceID(rawValue: try row.unsigned()),
            digest: try row.unsigned())
    }
}

extension RefusedWrite {
    fileprivate var row: [UInt8] {
        BinaryPropertyList.encode(
            .array([
                .data(record.key.bytes), .row(record.row), .string(refusal.code),
                .string(refusal.detail),
            ]))
    }

    /// - Parameter row: The data.
    init(row: PropertyListValue) throws(StoredFieldError) {
        guard case .data(let bytes) = row else { throw Row.otherForm }
        var row = try Row(.decoded(bytes))
        guard case .data(let bytes)? = row.rest(), var record = try row.row(),
            let key = bytes.withUnsafeBytes({ try? Key(bytes: $0) }),
            case .string(let code)? = row.rest(), case .string(let detail)? = row.rest()
        else { throw Row.otherForm }
        self.init(
            record: try Record(key: key, row: &record),
            refusal: Refusal(code: code.string, detail: detail.string))
    }
}

/// The elements of a list, in their order: names would take most of the time to open a store.
private struct Row {
    private var elements: ArraySlice<PropertyListValue>

    static let otherForm = StoredFieldError.otherType("entry")

    init(_ value: PropertyListValue) throws(StoredFieldError) {
        guard case .array(let elements) = value else { throw Self.otherForm }
        self.elements = elements[...]
    }

    /// The next value, if there is one.
    mutating func rest() -> PropertyListValue? { elements.popFirst() }

    /// Nil for false.
    mutating func row() throws(StoredFieldError) -> Row? {
        guard let next = elements.popFirst() else { throw Self.otherForm }
        if case .boolean(false) = next { return nil }
        return try Row(next)
    }

    mutating func flag() throws(StoredFieldError) -> Bool {
        guard case .boolean(let flag)? = elements.popFirst() else { throw Self.otherForm }
        return flag
    }

    mutating func integer() throws(StoredFieldError) -> Int64 {
        guard case .integer(let integer)? = elements.popFirst() else { throw Self.otherForm }
        return integer
    }

    mutating func unsigned() throws(StoredFieldError) -> UInt64 {
        switch elements.popFirst() {
        case .integer(let integer)? where integer >= 0: return UInt64(integer)
        case .unsigned(let unsigned)?: return unsigned
        default: throw Self.otherForm
        }
    }
}

extension PropertyListValue {
    fileprivate static func row(_ elements: [PropertyListValue]?) -> Self {
        elements.map { .array($0) } ?? .boolean(false)
    }
}
