// SPDX-License-Identifier: Apache-2.0

// The protocol's messages in JSON: docs/PROTOCOL.md and Protocol/ubiquity.proto.

extension Record {
    init(_ wire: WireFields) throws(WireFault) {
        var key: Key
        do throws(KeyError) {
            key = try Key(wire.checkedText("key"))
            try KeyLimit.utf8Bytes(Key.bytesMax).check(key)
        } catch { throw WireFault(error.description) }
        let part = try wire.text("part")
        if !part.isEmpty {
            guard let part = PartID(part) else { throw WireFault(KeyError.noPart.description) }
            key = key.part(part)
        }
        var stamp = try Stamp(time: wire)
        stamp.digest = try wire.number("digest")
        self.init(key: key, content: try Content(wire), stamp: stamp)
    }
}

extension Stamp {
    /// Without a digest.
    init(time wire: WireFields) throws(WireFault) {
        let milliseconds = try wire.number("milliseconds")
        guard (1..<1 << 48).contains(milliseconds),
            let counter = UInt16(exactly: try wire.number("counter")),
            let device = DeviceID(try wire.text("device"))
        else { throw WireFault("a record has no valid time and device") }
        self.init(
            HybridTimestamp(milliseconds: Int64(milliseconds), counter: counter), device, digest: 0)
    }
}

extension WireFields {
    /// For a caller that throws something else: text of another type is no key either.
    fileprivate func checkedText(_ name: ExactString) -> String { (try? text(name)) ?? "" }
}

extension Content {
    fileprivate init(_ wire: WireFields) throws(WireFault) {
        if let value = wire["value"] {
            do throws(UnsupportedValue) {
                self = .value(try PropertyListValue(received: value))
            } catch { throw WireFault(error.description) }
        } else {
            guard try wire.flag("deleted") else {
                throw WireFault("either \"value\" or \"deleted\": true is required")
            }
            self = .deleted
        }
    }
}

extension Cursor {
    init(_ wire: WireFields) throws(WireFault) {
        guard let cursor = Cursor(try wire.text("cursor")) else {
            throw WireFault("\"cursor\" is not a cursor")
        }
        self = cursor
    }
}

extension ChangeSet {
    init(_ wire: WireFields) throws(WireFault) {
        var records: [Record] = []
        for record in try wire.list("records") { records.append(try Record(WireFields(record))) }
        self.init(
            records: records, cursor: try Cursor(wire),
            serverMilliseconds: try wire.milliseconds("serverMilliseconds"),
            isWhole: try wire.flag("whole"),
            horizon: HybridTimestamp(milliseconds: try wire.milliseconds("horizonMilliseconds")))
    }
}

extension PushAnswer {
    init(_ wire: WireFields) throws(WireFault) {
        var results: [TransactionResult] = []
        for result in try wire.list("results") {
            results.append(try TransactionResult(WireFields(result)))
        }
        self.init(
            cursor: try Cursor(wire),
            serverMilliseconds: try wire.milliseconds("serverMilliseconds"), results: results)
    }
}

extension TransactionResult {
    fileprivate init(_ wire: WireFields) throws(WireFault) {
        if let committed = try wire.object("committed") {
            var writes: [WriteResult] = []
            for write in try committed.list("writes") {
                writes.append(try WriteResult(WireFields(write)))
            }
            self = .committed(writes)
        } else if let refused = try wire.object("refused") {
            self = .refused(
                Refusal(code: try refused.text("code"), detail: try refused.text("detail")))
        } else {
            throw WireFault("a transaction's result has no outcome")
        }
    }
}

extension WriteResult {
    fileprivate init(_ wire: WireFields) throws(WireFault) {
        if let record = try wire.object("superseded") {
            self = .superseded(by: try Record(record))
        } else if try wire.flag("applied") {
            self = .applied
        } else if try wire.flag("olderThanForgotten") {
            self = .olderThanCompacted
        } else {
            throw WireFault("a write's result has no outcome")
        }
    }
}

extension ServerConfig {
    /// A limit that is missing in the message keeps its default.
    init(_ wire: WireFields) throws(WireFault) {
        var (limits, allowance) = (StoreLimits(), Allowance())
        if let wire = try wire.object("limits") {
            func limit(_ name: ExactString, or usual: Int) throws(WireFault) -> Int {
                let number = try wire.number(name)
                return number == 0 ? usual : Int(clamping: number)
            }
            limits.storeBytesMax = try limit("storeBytesMax", or: limits.storeBytesMax)
            limits.keysMax = try limit("keysMax", or: limits.keysMax)
            limits.valueBytesMax = try limit("valueBytesMax", or: limits.valueBytesMax)
            limits.pushBytesMax = try limit("pushBytesMax", or: limits.pushBytesMax)
            let (units, bytes) = (
                try wire.number("keyUtf16Max"), try wire.number("keyBytesMax")
            )
            if units > 0 {
                limits.key = .utf16Units(Int(clamping: units))
            } else if bytes > 0 {
                limits.key = .utf8Bytes(Int(clamping: bytes))
            }
        }
        if let wire = try wire.object("allowance") {
            allowance = Allowance(
                burst: Int(clamping: try wire.number("burst")),
                perSecond: try wire.real("perSecond"))
        }
        self.init(
            serverMilliseconds: try wire.milliseconds("serverMilliseconds"), limits: limits,
            allowance: allowance,
            deletionsRememberedSeconds: Int64(
                clamping: try wire.number("deletionsRememberedSeconds")),
            keepAliveSeconds: Int64(clamping: try wire.number("keepAliveSeconds")))
    }
}

extension StreamMessage {
    /// Nil for an event that this version does not know.
    init?(_ name: ExactString, _ data: [UInt8], within bounds: MessageBounds) throws(WireFault) {
        switch name {
        case "changes": self = .changes(try ChangeSet(WireFields(data, within: bounds)))
        case "ready": self = try .ready(WireFields(data, within: .small))
        case "resync": self = .resync
        default: return nil
        }
    }

    static func ready(_ wire: WireFields) throws(WireFault) -> StreamMessage {
        guard let config = try wire.object("config") else {
            throw WireFault("\"config\" is missing")
        }
        return .ready(try Cursor(wire), try ServerConfig(config))
    }
}

extension LinkFailure {
    /// Translates an unsuccessful answer. Its problem details become the sentence.
    init(status: Int, headers: [ExactString: ExactString], body: [UInt8], server: String) {
        let problem = try? WireFields(body, within: .small)
        func text(_ name: ExactString) -> String { (try? problem?.text(name)) ?? "" }
        let code = ExactString(text("code"))
        // Browsers do not show the status of a redirect.
        guard status != 0, !(300..<400).contains(status) else {
            self.init(
                .unreachable,
                "\(server) redirects requests to another address, which no credential follows; sign in "
                    + "with that address")
            return
        }
        // Of something in front of the server: a proxy, or the page of a network to sign in to.
        guard
            text("type").utf8.starts(with: "urn:ubiquity:problem:".utf8)
                || Self.isFromAnybody(status)
        else {
            self.init(
                .unreachable,
                "something other than the Ubiquity server answered at \(server) (\(status))")
            return
        }
        var wait: Int64?
        for (name, value) in headers where name.string.isHeader("retry-after") {
            wait = Int64(value.string).map { min(max($0, 0), 3_600) * 1_000 }
        }
        let detail = text("detail")
        let ahead = (try? problem?.milliseconds("serverMilliseconds")) ?? 0
        let generation = (try? problem?.number("generation")) ?? 0
        self.init(
            Kind(status, code, ahead: ahead, generation: generation, wait: wait),
            detail.isEmpty
                ? "the server at \(server) answered \(status)"
                : detail.utf8.last == UInt8(ascii: ".")
                    ? String(detail.unicodeScalars.dropLast()) : detail)
        self.code = code.string.isEmpty ? nil : code.string
    }
}

extension String {
    /// Whether it is this header's name, which is in lower case.
    fileprivate func isHeader(_ name: StaticString) -> Bool {
        name.withUTF8Buffer { name in utf8.elementsEqual(name) { $0 | 0x20 == $1 } }
    }
}

extension LinkFailure.Kind {
    fileprivate init(
        _ status: Int, _ code: ExactString, ahead: Int64, generation: UInt64, wait: Int64?
    ) {
        switch code {
        case "clock-ahead" where ahead > 0: self = .clockAhead(serverMilliseconds: ahead)
        case "sealed": self = .sealed(generation: UInt32(clamping: generation))
        case "too-many", "history-forgotten", "history-off": self = .refused
        case "cursor-other-history": self = .cursorGone(isOtherHistory: true)
        case "too-many-streams": self = .tooManyStreams(retryAfterMilliseconds: wait ?? 30_000)
        default: self = Self(status: status, retryAfterMilliseconds: wait)
        }
    }
}
