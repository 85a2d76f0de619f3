// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

extension WireRecord {
    package init(_ record: Record) {
        self.init()
        key = record.key.string
        part = record.key.part?.text.string ?? ""
        switch record.content {
        case .deleted: content = .deleted(true)
        case .value(let value): content = .value(WireValue(value))
        }
        milliseconds = UInt64(record.stamp.timestamp.milliseconds)
        counter = UInt32(record.stamp.timestamp.counter)
        device = record.stamp.device.description
        digest = record.stamp.digest
    }
}

extension Record {
    /// - Parameter author: The device of records that name none; nil if every record must name one.
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WireRecord, author: DeviceID? = nil) throws(WireError) {
        self.init(
            key: try Key(of: wire), content: try Content(wire.content),
            stamp: Stamp(
                try HybridTimestamp(wire.milliseconds, wire.counter),
                try DeviceID(wire.device, default: author),
                digest: wire.digest))
    }
}

extension [Record] {
    /// - Throws: ``WireError`` that names the record with the fault.
    init(_ wire: [WireRecord]) throws(WireError) {
        self = []
        reserveCapacity(wire.count)
        for (index, record) in wire.enumerated() {
            do { append(try Record(record)) } catch {
                throw WireError("records[\(index)]: \(error)")
            }
        }
    }
}

extension WireReplaced {
    init(_ stamp: Stamp) {
        self.init()
        milliseconds = UInt64(stamp.timestamp.milliseconds)
        counter = UInt32(stamp.timestamp.counter)
        device = stamp.device.description
    }
}

extension Stamp {
    /// - Parameter author: As for a record.
    init(wire: WireReplaced, author: DeviceID? = nil) throws(WireError) {
        self.init(
            try HybridTimestamp(wire.milliseconds, wire.counter),
            try DeviceID(wire.device, default: author))
    }
}

extension Key {
    fileprivate init(of wire: WireRecord) throws(WireError) {
        do {
            self = try Key(wire.key)
            try KeyLimit.utf8Bytes(Key.bytesMax).check(self)
        } catch { throw WireError("\(error)") }
        guard !wire.part.isEmpty else { return }
        guard let part = PartID(wire.part) else { throw WireError("\(KeyError.noPart)") }
        self = self.part(part)
    }
}

extension Content {
    fileprivate init(_ wire: WireRecord.OneOf_Content?) throws(WireError) {
        switch wire {
        case .value(let value): self = .value(try PropertyListValue(value))
        case .deleted(true): self = .deleted
        case .deleted(false), nil:
            throw WireError("either \"value\" or \"deleted\": true is required")
        }
    }
}

extension HybridTimestamp {
    fileprivate init(_ milliseconds: UInt64, _ counter: UInt32) throws(WireError) {
        guard (1..<1 << 48).contains(milliseconds) else {
            throw WireError("\"milliseconds\" must be the time of the edit, since 1970")
        }
        guard let counter = UInt16(exactly: counter) else {
            throw WireError("\"counter\" is at most 65535")
        }
        self.init(milliseconds: Int64(milliseconds), counter: counter)
    }
}

extension DeviceID {
    fileprivate init(_ text: String, default author: DeviceID?) throws(WireError) {
        if text.isEmpty, let author {
            self = author
        } else if let device = DeviceID(text) {
            self = device
        } else {
            throw WireError("\"device\" must be 16 hexadecimal digits")
        }
    }
}
