// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityCore
import UbiquityWire

/// The client's answer to a command: its actions and its new state.
struct ClientAnswer {
    struct Request {
        var id: Int
        var method: String
        var path: String
        var query: [String: String]
        /// The names are in lower case.
        var headers: [String: String]
        var body: [UInt8]
    }

    struct State: Equatable {
        /// The values that the app sees.
        var values: [Key: PropertyListValue] = [:]
        /// The records of keys with parts.
        var records: [Key: PropertyListValue] = [:]
        /// The entries with a write of this device that is not agreed.
        var waiting: Set<Key> = []
        /// The cursor that it would resume from.
        var cursor: Cursor?
        var isConnected = false
        /// Why the disk does not save, as the app is told; nil if it does.
        var diskError: String?
        /// The keys whose values are those of the state before.
        fileprivate var unchanged: Set<Key> = []

        /// This state, with the values that are as they were before.
        func completed(by before: Self) -> Self {
            var state = self
            for key in unchanged { state.values[key] = before.values[key] }
            state.unchanged = []
            return state
        }

        /// The content of each record, by the key of its entry.
        var contents: [Key: PropertyListValue] {
            let keysWithParts = Set(records.keys.map(\.whole))
            return values.filter { !keysWithParts.contains($0.key) }.merging(records) { $1 }
        }
    }

    var requests: [Request] = []
    var cancelled: [Int] = []
    var isSaving = false
    /// It begins to read what other processes saved.
    var isReading = false
    /// Another process saved first, so the save is not on the disk.
    var isConflict = false
    /// In the answer to ``ClientCommand/begin``: the number of processes that a device can have;
    /// nil if the client knows nothing of processes.
    var processes: Int?
    /// The uptime at which time alone makes something possible.
    var wake: Int64?
    /// Why a write was refused.
    var error: String?
    var notices: [Notice] = []
    /// Whether a notice is still to come.
    var isNotifying = false
    /// The round trips that are done, and whether they succeeded.
    var synced: [(id: Int, isDone: Bool)] = []
    /// The app's questions whether everything is on the disk, with the answers.
    var synchronized: [(id: Int, isSaved: Bool)] = []
    /// Nil if it is as before.
    var state: State?

    /// More requests or notices than any client makes at once.
    private static let countMax = 256

    /// - Throws: ``ClientTrouble`` if the line is not an answer.
    init(_ line: [UInt8]) throws(ClientTrouble) {
        guard let json = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any]
        else {
            throw ClientTrouble("it said what is not a JSON object: \(Self.beginning(line))")
        }
        let fields = Fields(json, "its answer")
        for one in try fields.list("requests") { requests.append(try Request(one)) }
        cancelled = try fields.optional("cancelled") ?? []
        isSaving = try fields.optional("saves") ?? false
        isReading = try fields.optional("reads") ?? false
        isConflict = try fields.optional("conflict") ?? false
        processes = try fields.optional("processes")
        wake = try fields.optional("wake", Double.self).map {
            Int64(max(0, min($0, 1e15)).rounded(.up))
        }
        error = try fields.optional("error")
        isNotifying = try fields.optional("isNotifying") ?? false
        for one in try fields.list("notices") {
            guard let reason = try Self.reasons[one.required("reason", String.self)] else {
                throw ClientTrouble("it gives an unknown reason: \(one.json)")
            }
            notices.append(
                Notice(reason, Set(try one.required("keys", [String].self).map(Self.key))))
        }
        for one in try fields.list("synced") {
            synced.append((try one.required("id"), try one.optional("error", String.self) == nil))
        }
        for one in try fields.list("synchronized") {
            synchronized.append((try one.required("id"), try one.required("isSaved")))
        }
        if let state = try fields.optional("state", [String: Any].self) {
            self.state = try State(Fields(state, "its state"))
        }
        let counts = [
            requests.count, notices.count, synced.count, synchronized.count, cancelled.count,
        ]
        guard counts.allSatisfy({ $0 <= Self.countMax }) else {
            throw ClientTrouble("it does more than \(Self.countMax) things at once")
        }
    }

    private static let reasons: [String: Notice.Reason] = [
        "serverChange": .serverChange, "initialSync": .initialSync,
        "quotaViolation": .quotaViolation,
    ]

    fileprivate static func key(_ text: String) throws(ClientTrouble) -> Key {
        do { return try Key(text) } catch { throw ClientTrouble("it names the key \(text)") }
    }

    private static func beginning(_ line: [UInt8]) -> String {
        String(String(decoding: line.prefix(200), as: UTF8.self))
    }
}

extension ClientAnswer.Request {
    fileprivate init(_ fields: Fields) throws(ClientTrouble) {
        id = try fields.required("id")
        method = try fields.required("method")
        let address: String = try fields.required("path")
        guard let parts = URLComponents(string: address) else {
            throw ClientTrouble("it asks for \(address), which is not an address")
        }
        path = parts.path
        query = Dictionary((parts.queryItems ?? []).map { ($0.name, $0.value ?? "") }) { $1 }
        let headers: [String: String] = try fields.optional("headers") ?? [:]
        self.headers = Dictionary(headers.map { ($0.key.lowercased(), $0.value) }) { $1 }
        body = Array((try fields.optional("body", String.self) ?? "").utf8)
    }
}

extension ClientAnswer.State {
    fileprivate init(_ fields: Fields) throws(ClientTrouble) {
        values = try fields.contents("values")
        records = try fields.contents("records")
        for one in try fields.list("waiting") {
            let key = try ClientAnswer.key(one.required("key"))
            let part = try one.optional("part", String.self).map { PartID($0) }
            if case .some(nil) = part { throw ClientTrouble("it names a part wrongly") }
            waiting.insert(part.flatMap(\.self).map { key.part($0) } ?? key)
        }
        if let text = try fields.optional("cursor", String.self) {
            guard let cursor = Cursor(text) else {
                throw ClientTrouble("it keeps \(text), which is not a cursor")
            }
            self.cursor = cursor
        }
        isConnected = try fields.required("isConnected")
        diskError = try fields.optional("diskError")
        unchanged = Set(
            try (fields.optional("unchanged", [String].self) ?? []).map(ClientAnswer.key))
    }
}

/// The fields of a JSON object from the client.
private struct Fields {
    let json: [String: Any]
    private let name: String

    init(_ json: [String: Any], _ name: String) { (self.json, self.name) = (json, name) }

    /// Nil for a null too.
    func optional<Value>(
        _ field: String, _ type: Value.Type = Value.self
    ) throws(ClientTrouble) -> Value? {
        guard let value = json[field], !(value is NSNull) else { return nil }
        guard let value = value as? Value else {
            throw ClientTrouble("\(name) has a field \"\(field)\" of the wrong type")
        }
        return value
    }

    func required<Value>(
        _ field: String, _ type: Value.Type = Value.self
    ) throws(ClientTrouble) -> Value {
        guard let value: Value = try optional(field) else {
            throw ClientTrouble("\(name) has no field \"\(field)\": \(json.keys.sorted())")
        }
        return value
    }

    func list(_ field: String) throws(ClientTrouble) -> [Fields] {
        (try optional(field, [[String: Any]].self) ?? []).map {
            Fields($0, "an element of \(field)")
        }
    }

    /// Records of the protocol, without timestamps.
    func contents(_ field: String) throws(ClientTrouble) -> [Key: PropertyListValue] {
        guard let list = json[field] as? [Any], !list.isEmpty else { return [:] }
        do {
            let data = try JSONSerialization.data(withJSONObject: ["records": list])
            let wire = try WireFormat.json.decode(WireChanges.self, from: data)
            var contents: [Key: PropertyListValue] = [:]
            for var record in wire.records {
                // A record of the protocol has a time.
                record.milliseconds = 1
                let record = try Record(record, author: DeviceID(rawValue: 1))
                contents[record.key] = record.content.value
            }
            return contents
        } catch { throw ClientTrouble("its \(field) are not records: \(error)") }
    }
}
