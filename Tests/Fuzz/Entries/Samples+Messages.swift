// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityWire

extension Samples {
    static func pushes() throws -> [String: Push] {
        var pushes = values.mapValues { Push(only: record($0)) }
        pushes["deletion"] = Push(only: record(nil, device: device))
        let first = record(.integer(1), device: device)
        pushes["transactions"] = Push([
            try Transaction([first, record(.string("x"), key: otherKey)]),
            try Transaction([record(.real(0.5), counter: 4)]),
        ])
        pushes["empty"] = Push([])
        return pushes
    }

    static func answers(_ format: WireFormat) throws -> [String: [UInt8]] {
        var answers: [String: any Message] = [
            "config": WireConfig(config), "changes-none": WireChanges(emptyStore),
            "changes": WireChanges(changes), "push-answer": WirePushAnswer(pushAnswer),
        ]
        answers["problem"] = WireProblem.with {
            $0.status = 409
            $0.code = "clock-ahead"
            $0.detail = "transactions[0].writes[0] has a timestamp too far in the future."
            $0.serverMilliseconds = UInt64(milliseconds)
        }
        answers["sign-in"] = WireSignInAnswer.with {
            $0.account = "0123456789abcdef"
            $0.accountName = "anna"
            $0.device = device.description
            $0.credential = "ubd_secret"
        }
        for (name, value) in values {
            answers["changes-\(name)"] = WireChanges(
                ChangeSet(
                    records: [record(value)], cursor: cursor, serverMilliseconds: milliseconds,
                    isWhole: false))
        }
        var encoded = answers.mapValues { format.encode($0) }
        encoded["changes-deepest"] = DeepestValue.changes(format)
        return encoded
    }

    static func streams() throws -> [String: [UInt8]] {
        let ready = WireReady.with {
            $0.cursor = cursor.text
            $0.config = WireConfig(config)
        }
        let first = event("changes", WireChanges(emptyStore)) + event("ready", ready)
        return [
            "first-sync": first, "news": first + event("changes", WireChanges(changes)),
            "binary": first + binary(changes),
            "resync": first + Array("event: resync\ndata: {}\n\n".utf8),
            "comments": Array(":\n\n: x\r\n\r\rid\ndata\ndata: a\nretry: 1\n\n".utf8),
            "lines": Array("\u{FEFF}data:one\r\ndata:two\revent: x\nid: 7\n\nid: a\u{0}b\n".utf8),
        ]
    }

    private static var changes: ChangeSet {
        ChangeSet(
            records: [record(.integer(5)), record(nil, key: otherKey)], cursor: cursor,
            serverMilliseconds: milliseconds, isWhole: false)
    }

    private static var pushAnswer: PushAnswer {
        PushAnswer(
            cursor: cursor, serverMilliseconds: milliseconds,
            results: [
                .committed([.applied, .superseded(by: record(.integer(9))), .olderThanCompacted]),
                .refused(Refusal(code: "quota-bytes", detail: "too much")),
            ])
    }

    private static func binary(_ changes: ChangeSet) -> [UInt8] {
        let data = Data(WireFormat.protobuf.encode(WireChanges(changes))).base64EncodedString()
        return Array("event: binary\ndata: \(data)\n\n".utf8)
    }

    private static func event(_ name: String, _ message: some Message) -> [UInt8] {
        let json = String(decoding: WireFormat.json.encode(message), as: UTF8.self)
        return Array("event: \(name)\nid: \(cursor.text)\ndata: \(json)\n\n".utf8)
    }
}

extension Push {
    fileprivate init(only record: Record) {
        // One write has one key.
        self.init((try? Transaction([record])).map { [$0] } ?? [])
    }
}
