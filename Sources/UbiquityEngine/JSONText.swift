// SPDX-License-Identifier: Apache-2.0

/// A push in the protocol's JSON.
struct JSONText {
    private(set) var bytes: [UInt8] = []

    mutating func add(_ push: Push, by author: DeviceID, at now: ClockReading) {
        raw("{\"transactions\":[")
        list(push.transactions) { json, transaction in
            json.raw("{\"writes\":[")
            json.list(transaction.writes) { json, write in
                json.add(write, transaction, by: author)
            }
            json.raw("]}")
        }
        raw("]")
        if push.tellsHad { raw(",\"tellsHad\":true") }
        if let saved = push.saved {
            raw(",\"saved\":")
            text(saved.text)
        }
        if push.generation > 0 { raw(",\"generation\":\(push.generation)") }
        raw(",\"deviceMilliseconds\":\"\(max(0, now.wall))\"}")
    }

    /// The request for a stream of several stores.
    mutating func add(_ places: [SharedStream.Place]) {
        raw("{\"stores\":[")
        list(places) { json, place in
            json.raw("{\"identifier\":")
            json.text(place.store.string)
            if let cursor = place.since {
                json.raw(",\"since\":")
                json.text(cursor.text)
            }
            if !place.isSaved { json.raw(",\"saved\":false") }
            if place.generation > 0 { json.raw(",\"generation\":\(place.generation)") }
            json.raw("}")
        }
        raw("]}")
    }

    private mutating func add(_ write: Record, _ transaction: Transaction, by author: DeviceID) {
        raw("{\"key\":")
        text(write.key.string)
        if let part = write.key.part {
            raw(",\"part\":")
            text(part.text.string)
        }
        if let value = write.content.value {
            raw(",\"value\":")
            add(value)
        } else {
            raw(",\"deleted\":true")
        }
        raw(",")
        time(of: write.stamp, by: author)
        if write.stamp.digest != 0 { raw(",\"digest\":\"\(write.stamp.digest)\"") }
        if let had = transaction.had[write.key] {
            raw(",\"had\":{")
            time(of: had, by: author)
            raw("}")
        }
        if transaction.unkept.contains(write.key) { raw(",\"unkept\":true") }
        raw("}")
    }

    private mutating func time(of stamp: Stamp, by author: DeviceID) {
        raw("\"milliseconds\":\"\(stamp.timestamp.milliseconds)\"")
        if stamp.timestamp.counter != 0 { raw(",\"counter\":\(stamp.timestamp.counter)") }
        if stamp.device != author { raw(",\"device\":\"\(stamp.device.description)\"") }
    }

    /// A value in the exact form.
    private mutating func add(_ value: PropertyListValue) {
        switch value {
        case .string(let string):
            raw("{\"string\":")
            text(string.string)
        case .boolean(let boolean): raw("{\"boolean\":\(boolean ? "true" : "false")")
        case .integer(let integer): raw("{\"integer\":\"\(integer)\"")
        case .unsigned(let unsigned): raw("{\"unsigned\":\"\(unsigned)\"")
        case .real(let real):
            raw("{\"real\":")
            number(real)
        case .date(let seconds):
            raw("{\"date\":")
            number(seconds)
        case .data(let data):
            raw("{\"data\":\"")
            bytes += Base64.encode(data)
            raw("\"")
        case .array(let values):
            raw("{\"array\":{\"values\":[")
            list(values) { $0.add($1) }
            raw("]}")
        case .dictionary(let entries):
            raw("{\"dictionary\":{\"entries\":[")
            list(entries.inOrder { $0.key < $1.key }) { json, entry in
                json.raw("{\"key\":")
                json.text(entry.key.string)
                json.raw(",\"value\":")
                json.add(entry.value)
                json.raw("}")
            }
            raw("]}")
        case .sealed(let box):
            raw("{\"sealed\":{\"generation\":\(box.generation),\"box\":\"")
            bytes += Base64.encode(box.bytes)
            raw("\"}")
        }
        raw("}")
    }

    private mutating func number(_ real: Double) {
        if real.isNaN {
            raw("\"NaN\"")
        } else if real.isInfinite {
            raw(real < 0 ? "\"-Infinity\"" : "\"Infinity\"")
        } else {
            raw("\(real)")
        }
    }

    private mutating func list<Element>(
        _ elements: some Sequence<Element>, _ add: (inout JSONText, Element) -> Void
    ) {
        var isFirst = true
        for element in elements {
            if !isFirst { raw(",") }
            isFirst = false
            add(&self, element)
        }
    }

    private mutating func raw(_ text: String) { bytes += text.utf8 }

    private mutating func text(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0..<0x20:
                let digits = String(byte, radix: 16)
                raw("\\u00" + (digits.utf8.count == 1 ? "0" : "") + digits)
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
