// SPDX-License-Identifier: Apache-2.0

// What a shell keeps on its disk: rows of bytes, which only the engine reads.

extension SaveBatch {
    /// An entry without bytes has nothing; the row stays only for processes that have known the key.
    var fields: [ExactString: PropertyListValue?] {
        [
            "expects": .integer(expectedVersion),
            "entries": .array(
                entries.map { entry in
                    .fields(["key": .data(entry.key.bytes), "entry": entry.row.map { .data($0) }])
                }),
            "meta": meta.map { .data(BinaryPropertyList.encode($0.fields)) },
            "refused": refused.isEmpty ? nil : .array(refused.map { .data($0.row) }),
        ]
    }
}

extension DiskChanges {
    init(_ fields: StoredFields) throws(StoredFieldError) {
        self.init(version: try fields.number("version"))
        let rows = try fields.array("entries") ?? []
        entries.reserveCapacity(rows.count)
        for row in rows { entries.append(try StoredEntry(row: StoredFields(row))) }
        if let bytes = try fields.data("meta") { meta = try StoredMeta(fields: .decoded(bytes)) }
    }
}

extension StoredEntry {
    fileprivate var row: [UInt8]? {
        guard confirmed != nil || pending != nil else { return nil }
        return BinaryPropertyList.encode(
            .fields([
                "confirmed": confirmed.map { .fields($0.row) },
                "pending": pending.map { .fields($0.row) },
                "unkept": wasUnkept ? .boolean(true) : nil,
            ]))
    }

    fileprivate init(row: StoredFields) throws(StoredFieldError) {
        guard let bytes = try row.data("key") else { throw .missing("key") }
        guard let key = bytes.withUnsafeBytes({ try? Key(bytes: $0) }) else {
            throw .otherType("key")
        }
        self.init(key: key)
        guard let bytes = try row.data("entry") else { return }
        let fields = try StoredFields(.decoded(bytes))
        confirmed = try fields.fields("confirmed")
            .map { fields throws(StoredFieldError) in try Record(key: key, row: fields) }
        pending = try fields.fields("pending")
            .map { fields throws(StoredFieldError) in try PendingWrite(key: key, row: fields) }
        wasUnkept = try fields.boolean("unkept") ?? false
    }
}

extension PendingWrite {
    fileprivate var row: [ExactString: PropertyListValue?] {
        var row = record.row
        row["transaction"] = .some(.init(unsigned: transaction))
        row["had"] = had.map { .fields($0.row) }
        if let provisional {
            row["made"] = .fields([
                "wall": .integer(provisional.madeAt.wall),
                "uptime": .integer(provisional.madeAt.uptime),
                "boot": .init(unsigned: provisional.madeAt.boot),
                "seen": .init(unsigned: provisional.seen.rawValue),
            ])
        }
        if isUnkept { row["unkept"] = .some(.boolean(true)) }
        return row
    }

    fileprivate init(key: Key, row: StoredFields) throws(StoredFieldError) {
        self.init(
            record: try Record(key: key, row: row),
            transaction: try StoredFields.need(row.integer("transaction"), "transaction"),
            had: try row.fields("had").map(Stamp.init(row:)),
            isUnkept: try row.boolean("unkept") ?? false)
        guard let made = try row.fields("made") else { return }
        provisional = ProvisionalStamp(
            madeAt: ClockReading(
                wall: try made.number("wall"), uptime: try made.number("uptime"),
                boot: try StoredFields.need(made.integer("boot"), "boot")),
            seen: HybridTimestamp(
                rawValue: try StoredFields.need(made.integer("seen"), "seen")))
    }
}

extension Record {
    fileprivate var row: [ExactString: PropertyListValue?] {
        var row = stamp.row
        row["value"] = content.value
        return row
    }

    fileprivate init(key: Key, row: StoredFields) throws(StoredFieldError) {
        self.init(
            key: key, content: row["value"].map(Content.value) ?? .deleted,
            stamp: try Stamp(row: row))
    }
}

extension Stamp {
    fileprivate var row: [ExactString: PropertyListValue?] {
        [
            "time": .init(unsigned: timestamp.rawValue), "device": .init(unsigned: device.rawValue),
            "digest": digest == 0 ? nil : .init(unsigned: digest),
        ]
    }

    fileprivate init(row: StoredFields) throws(StoredFieldError) {
        self.init(
            HybridTimestamp(rawValue: try StoredFields.need(row.integer("time"), "time")),
            DeviceID(rawValue: try StoredFields.need(row.integer("device"), "device")),
            digest: try row.integer("digest") ?? 0)
    }
}

extension RefusedWrite {
    fileprivate var row: [UInt8] {
        var row = record.row
        row["key"] = .some(.data(record.key.bytes))
        row["code"] = .some(.string(refusal.code))
        row["detail"] = .some(.string(refusal.detail))
        return BinaryPropertyList.encode(.fields(row))
    }
}
