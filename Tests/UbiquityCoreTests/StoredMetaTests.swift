// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

/// The form in which a disk has what it has besides the keys.
struct StoredMetaTests {
    /// Every field is other than it is to begin with.
    private static var full: StoredMeta {
        var meta = StoredMeta()
        meta.account = "0123"
        meta.cursor = Cursor("0123456789abcdef-42")
        meta.hasCompletedFirstSync = true
        meta.correction = ClockCorrection(
            reading: ClockReading(wall: 1, uptime: -2, boot: .max), serverMilliseconds: .max)
        meta.limits.storeBytesMax = 11
        meta.limits.keysMax = 12
        meta.limits.valueBytesMax = 13
        meta.limits.key = .utf16Units(14)
        meta.limits.pushBytesMax = 15
        meta.allowance = Allowance(burst: 16, perSecond: 0.1)
        meta.syncsRequested = 17
        meta.syncsCompleted = 18
        meta.syncsTaken = 21
        meta.term = 22
        meta.syncFailures = [
            SyncFailure(
                3...4, LinkFailure(.refused, "the store is full", refusedKeys: [try! Key("a")]))
        ]
        meta.link.state = .waiting
        meta.link.lastSync = 19
        meta.link.lastError = "é"
        meta.link.nextRetry = 20
        return meta
    }

    /// Each field, those of the parts included.
    private static let paths: [[ExactString]] = dictionary(full.fields).flatMap { name, value in
        if case .dictionary(let part) = value { return part.keys.map { [name, $0] } }
        return [[name]]
    }

    private static func dictionary(
        _ value: PropertyListValue
    ) -> [ExactString: PropertyListValue] {
        if case .dictionary(let fields) = value { fields } else { [:] }
    }

    private func full(
        with value: PropertyListValue?, at path: [ExactString]
    ) -> PropertyListValue {
        var fields = Self.dictionary(Self.full.fields)
        if path.count == 1 {
            fields[path[0]] = value
        } else {
            var part = Self.dictionary(fields[path[0]]!)
            part[path[1]] = value
            fields[path[0]] = .dictionary(part)
        }
        return .dictionary(fields)
    }

    @Test func `every field is read as it was written`() throws {
        #expect(Self.paths.count == 24)
        #expect(try StoredMeta(fields: Self.full.fields) == Self.full)
        #expect(try StoredMeta(fields: StoredMeta().fields) == StoredMeta())
        for state in ["signedOut", "connecting", "connected", "waiting", "unauthorized", "polling"]
        {
            var meta = StoredMeta()
            meta.link.state = try #require(LinkStatus.State(rawValue: state))
            meta.limits.key = .utf8Bytes(7)
            #expect(try StoredMeta(fields: meta.fields) == meta)
        }
    }

    @Test func `what is absent is what it is to begin with`() throws {
        #expect(try StoredMeta(fields: .dictionary([:])) == StoredMeta())
        for path in Self.paths where path[0] != "correction" {
            let meta = try StoredMeta(fields: full(with: nil, at: path))
            #expect(meta != Self.full, "\(path)")
        }
    }

    @Test(arguments: paths)
    func `a field of another type is an error that names it`(_ path: [ExactString]) throws {
        let error = #expect(throws: StoredFieldError.self) {
            try StoredMeta(fields: full(with: .date(1), at: path))
        }
        #expect(error == .otherType(path.last!.string))
    }

    @Test func `a word, a cursor and a clock that mean nothing are errors`() {
        let wrong: [([ExactString], PropertyListValue?, StoredFieldError)] = [
            (["link", "state"], .string("asleep"), .otherType("state")),
            (["cursor"], .string(""), .otherType("cursor")),
            (["correction", "boot"], .integer(-1), .otherType("boot")),
            (["correction", "wall"], nil, .missing("wall")),
            (["correction", "doubt"], nil, .missing("doubt")),
            (["syncsRequested"], .unsigned(.max), .otherType("syncsRequested")),
        ]
        for (path, value, error) in wrong {
            #expect(throws: error) { try StoredMeta(fields: full(with: value, at: path)) }
        }
        #expect(throws: StoredFieldError.otherForm) { try StoredMeta(fields: .array([])) }
    }

    @Test func `a field that is not known is passed over`() throws {
        for path: [ExactString] in [["later"], ["link", "later"], ["limits", "later"]] {
            #expect(try StoredMeta(fields: full(with: .array([]), at: path)) == Self.full)
        }
    }
}
