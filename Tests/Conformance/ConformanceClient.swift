// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore
import UbiquityHTTP
import UbiquitySimulation
import UbiquityWire

/// The client library under `ubiquity-conformance`: the driver and the files that ship, with the
/// translation of answers, for the devices of the harness.
@main
enum ConformanceClient {
    static func main() throws {
        var processes: [[Int]: ClientProcess] = [:]
        var disks: [Int: DeviceFiles] = [:]
        defer { for disk in disks.values { disk.remove() } }
        // What the disk has no room for is an error, and not the end.
        signal(SIGXFSZ, SIG_IGN)
        while let line = readLine() {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            guard let command = object as? [String: Any], let action = command["do"] as? String
            else { throw Trouble.unknownCommand(line) }
            var answer: [String: Any] = [:]
            if action == "begin" {
                for process in processes.values { process.close() }
                for disk in disks.values { disk.remove() }
                (processes, disks) = ([:], [:])
                answer["processes"] = 2
            } else {
                guard let number = command["device"] as? Int else {
                    throw Trouble.unknownCommand(line)
                }
                let disk = try disks[number] ?? DeviceFiles()
                disks[number] = disk
                let name = [number, command["process"] as? Int ?? 0]
                let process = processes[name] ?? ClientProcess(disk: disk)
                processes[name] = process
                answer = try process.answer(to: command, action)
            }
            try write(JSONSerialization.data(withJSONObject: answer) + Data("\n".utf8))
        }
    }

    private static func write(_ data: Data) throws {
        try FileHandle.standardOutput.write(contentsOf: data)
    }

    enum Trouble: Error { case unknownCommand(String) }
}

/// One process of a device, whose disk others may have open too.
final class ClientProcess {
    private enum Request {
        case stream(Int)
        case push(Int)
        case pull(Int, withConfig: Bool)
    }

    private let disk: DeviceFiles
    private var storage: SQLiteStorage?
    private var driver: Driver?
    private var save: SaveBatch?
    /// The version after which it reads.
    private var reading: Int64?
    private var requests: [Int: Request] = [:]
    /// The pulls that also ask for the configuration: what has come of the two answers.
    private var pulls: [Int: (changes: ChangeSet?, config: ServerConfig?)] = [:]
    private var lastRequest = 0
    private var address = ""
    private var credential = ""
    private var device = DeviceID.unassigned
    private var signIn = DeviceState()
    /// The number of the account's key that requests name; 0 for none.
    private var generation: UInt32 = 0
    private var tripNumbers: [Int: Int] = [:]
    /// Those who ask whether everything is on the disk.
    private var questions: [Int] = []
    private var answer: [String: Any] = [:]
    private var said: State?
    private let server: ServerAddress

    init(disk: DeviceFiles) {
        self.disk = disk
        guard let server = try? ServerAddress("https://conformance.example") else {
            preconditionFailure("The address of the harness is not one.")
        }
        self.server = server
    }

    func answer(to command: [String: Any], _ action: String) throws -> [String: Any] {
        answer = [:]
        let now = try ClockReading(command)
        switch action {
        case "start": try start(command, now)
        case "kill":
            if command["keepsSave"] as? Bool == true { _ = try? keep() }
            close()
            (driver, save, reading, requests, pulls, said) = (nil, nil, nil, [:], [:], nil)
            questions = []
            return answer
        case "write":
            do { try write(command["writes"] as? [[String: Any]] ?? [], now) } catch let violation
                as LimitViolation
            { answer["error"] = violation.code }
        case "sync":
            guard let id = command["id"] as? Int, driver != nil else { break }
            tripNumbers[driver!.engine.requestSync(at: now)] = id
        case "synchronize":
            if let id = command["id"] as? Int { questions.append(id) }
            driver?.handle(.synchronize, at: now)
        case "saved": finishSave(nil, now)
        case "notSaved": finishSave(command["how"] as? String, now)
        case "read", "notRead": finishRead(isRead: action == "read", now)
        case "fileChanged": driver?.handle(.fileSignalled, at: now)
        case "leading":
            let (file, leads) = (driver?.file ?? 0, command["isLeading"] as? Bool ?? false)
            driver?.handle(.leading(file: file, leads), at: now)
        case "wake": break
        case "unlock":
            try takeKeys(command)
            driver?.handle(.accountSignalled, at: now)
        default: try heard(command, action, now)
        }
        run(now)
        let state = state
        if said != state {
            answer["state"] = state.fields(after: said)
            said = state
        }
        answer["wake"] = driver?.nextWake ?? NSNull()
        answer["isNotifying"] = driver?.engine.notices.isEmpty == false
        return answer
    }

    private func start(_ command: [String: Any], _ now: ClockReading) throws {
        let text = { (field: String) in command[field] as? String ?? "" }
        credential = text("credential")
        address = "/v1/stores/\(text("store"))/changes"
        device = DeviceID(text("name")) ?? .unassigned
        var settings = SyncEngine.Settings()
        settings.emptyMax = 2
        settings.firstSync = FirstSyncPolicy(rawValue: text("firstSync")) ?? .serverWins
        (signIn, generation) = (DeviceState(), 0)
        signIn.signIn(
            SignedInAccount(
                server: "https://conformance.example", account: text("account"),
                accountName: "", device: text("name"), deviceName: "", credential: credential))
        try takeKeys(command)
        let storage = try disk.open()
        self.storage = storage
        var driver = Driver(
            content: try storage.load(), device: signIn,
            store: try StoreIdentifier(text("store")), settings: settings,
            seed: UInt64(text("seed"), radix: 16) ?? 0, at: now)
        for key in (command["policies"] as? [String: String] ?? [:]).keys {
            driver.engine.setPolicy(.register, resolver: AppOperation.resolver, for: try Key(key))
        }
        self.driver = driver
    }

    private func takeKeys(_ command: [String: Any]) throws {
        guard let keys = command["keys"] as? [String: String] else { return }
        var fields: [ExactString: PropertyListValue] = [:]
        for (generation, key) in keys {
            fields[ExactString(generation)] = .string(ExactString(key))
        }
        try signIn.keep(try Keyring(fields: .dictionary(fields)))
    }

    private func write(_ writes: [[String: Any]], _ now: ClockReading) throws {
        var changes: [Key: Content] = [:]
        var operations: [Key: MergeOperation] = [:]
        for write in writes {
            let key = try Key(write["key"] as? String ?? "")
            let value = try write["value"].map(Self.value)
            if let letter = (write["policy"] as? String)?.unicodeScalars.first,
                let policy = MergePolicy(rawValue: letter)
            {
                operations[key] = MergeOperation(
                    policy, from: try write["base"].map(Self.value), to: value)
            } else {
                changes[key] = value.map(Content.value) ?? .deleted
            }
        }
        try driver?.engine.write(changes, merging: operations, at: now)
    }

    private static func value(_ json: Any) throws -> PropertyListValue {
        let data = try JSONSerialization.data(withJSONObject: json)
        return try PropertyListValue(WireFormat.json.decode(WireValue.self, from: data))
    }

    /// Closes its file.
    func close() {
        storage?.close()
        storage = nil
    }

    private func keep() throws -> SaveOutcome? {
        defer { save = nil }
        let outcome = try save.flatMap { try storage?.save($0) }
        if case .conflict = outcome { answer["conflict"] = true }
        return outcome
    }

    /// - Parameter how: What the save meets; nil if the disk works.
    private func finishSave(_ how: String?, _ now: ClockReading) {
        defer { save = nil }
        do {
            switch try how.map({ try disk.failing($0) { try keep() } }) ?? keep() {
            case .saved(let version): driver?.handle(.engine(.saved(version: version)), at: now)
            case .conflict(let changes): driver?.handle(.engine(.saveConflicted(changes)), at: now)
            case nil: break
            }
        } catch { driver?.handle(.engine(.saveFailed("\(error)")), at: now) }
    }

    private func finishRead(isRead: Bool, _ now: ClockReading) {
        guard let version = reading, let storage else { return }
        reading = nil
        do {
            guard isRead else { throw disk.closed }
            driver?.handle(.fileRead(try storage.changes(after: version)), at: now)
        } catch { driver?.handle(.fileUnreadable("\(error)"), at: now) }
    }

    // MARK: - Steps

    private func run(_ now: ClockReading) {
        decideConflicts()
        while let step = driver?.next(at: now) {
            switch step {
            case .decide: decideConflicts()
            case .effect(let effect): perform(effect, now)
            case .read(let version):
                reading = version
                answer["reads"] = true
            case .readAccount:
                driver?.handle(.accountRead(signIn), at: now)
            case .noteSealed(let account):
                signIn.sealedAccounts.insert(account)
                driver?.handle(.accountRead(signIn), at: now)
            case .connect(_, _, let generation): self.generation = generation
            case .synchronized(let isSaved):
                for id in questions { add("synchronized", ["id": id, "isSaved": isSaved]) }
                questions = []
            case .open, .release, .use, .report, .close: break
            }
        }
    }

    private func decideConflicts() {
        while let conflict = driver?.engine.takeConflict() {
            driver?.engine.decide(conflict, as: conflict.result)
        }
    }

    private func perform(_ effect: SyncEngine.Effect, _ now: ClockReading) {
        switch effect {
        case .save(let batch):
            save = batch
            answer["saves"] = true
        case .notify(let notice):
            add("notices", ["reason": "\(notice.reason)", "keys": notice.keys.map(\.string)])
            driver?.handle(.engine(.notified), at: now)
        case .finishSync(let number, let failure):
            guard let id = tripNumbers.removeValue(forKey: number) else { break }
            add("synced", failure.map { ["id": id, "error": $0.detail] } ?? ["id": id])
        case .listen(let number, let cursor, let isSaved):
            send(.stream(number), "GET", query(cursor, isSaved), accept: "text/event-stream")
        case .hangUp(let number):
            for case (let id, .stream(let stream)) in requests where stream == number {
                requests[id] = nil
                answer["cancelled"] = [id]
            }
        case .push(let number, let push):
            var wire = WirePush(push, author: device)
            wire.deviceMilliseconds = UInt64(clamping: now.wall)
            send(.push(number), "POST", "", body: WireFormat.json.encode(wire))
        case .pull(let number, let cursor, let isSaved, let withConfig):
            pulls[number] = (nil, nil)
            send(.pull(number, withConfig: withConfig), "GET", query(cursor, isSaved))
            if withConfig { send(.pull(number, withConfig: true), "GET", "", to: "/v1/config") }
        }
    }

    private func query(_ cursor: Cursor?, _ isSaved: Bool) -> String {
        let since = cursor.map { "since=\($0.text)" + (isSaved ? "" : "&saved=false") }
        let parts = [since, generation > 0 ? "generation=\(generation)" : nil].compactMap(\.self)
        return parts.isEmpty ? "" : "?" + parts.joined(separator: "&")
    }

    private func send(
        _ request: Request, _ method: String, _ query: String, to path: String? = nil,
        accept: String = "application/json", body: [UInt8]? = nil
    ) {
        lastRequest += 1
        requests[lastRequest] = request
        var headers = ["Authorization": "Bearer \(credential)", "Accept": accept]
        if body != nil { headers["Content-Type"] = "application/json" }
        var fields: [String: Any] = [
            "id": lastRequest, "method": method, "path": (path ?? address) + query,
            "headers": headers,
        ]
        if let body { fields["body"] = String(decoding: body, as: UTF8.self) }
        add("requests", fields)
    }

    private func add(_ field: String, _ element: [String: Any]) {
        answer[field] = (answer[field] as? [[String: Any]] ?? []) + [element]
    }

    // MARK: - Answers

    private func heard(_ command: [String: Any], _ action: String, _ now: ClockReading) throws {
        guard let id = command["request"] as? Int, let request = requests[id] else { return }
        let bounds = (driver?.engine.intake ?? IntakeLimits(nil)).message
        var failure: LinkFailure?
        var body = Data()
        switch action {
        case "fail":
            let isTimeout = command["why"] as? String == "timeout"
            failure = LinkFailure(isTimeout ? .timedOut : .unreachable, "lost")
        case "answer":
            body = Data((command["body"] as? String ?? "").utf8)
            let status = command["status"] as? Int ?? 0
            if status != 200 {
                failure = LinkFailure(
                    HTTPAnswerHead(
                        status: status,
                        fields: (command["headers"] as? [String: String] ?? [:])
                            .map { ($0.key, $0.value) }),
                    body: [UInt8](body), server)
            }
        default: break
        }
        switch request {
        case .stream(let number):
            if action == "event" {
                let event = StreamEvent(
                    name: command["name"] as? String ?? "",
                    data: Array((command["data"] as? String ?? "").utf8))
                guard let message = try ChangeEvent(event, within: bounds)?.message else { return }
                driver?.handle(.engine(.streamReceived(number, message)), at: now)
            } else if failure != nil || action == "end" {
                requests[id] = nil
                driver?.handle(.engine(.streamEnded(number, failure)), at: now)
            }
        case .push(let number):
            requests[id] = nil
            if let failure {
                driver?.handle(.engine(.pushFailed(number, failure)), at: now)
                return
            }
            let wire = try WireFormat.json.decode(
                WirePushAnswer.self, from: body, within: bounds)
            driver?.handle(.engine(.pushAnswered(number, try PushAnswer(wire))), at: now)
        case .pull(let number, let withConfig):
            requests[id] = nil
            guard var pull = pulls.removeValue(forKey: number) else { return }
            if let failure {
                driver?.handle(.engine(.pullFailed(number, failure)), at: now)
                return
            }
            if let changes = try? WireFormat.json.decode(WireChanges.self, from: body),
                !changes.cursor.isEmpty
            {
                pull.changes = try ChangeSet(changes)
            } else {
                pull.config = ServerConfig(
                    try WireFormat.json.decode(WireConfig.self, from: body))
            }
            guard var changes = pull.changes, !withConfig || pull.config != nil else {
                pulls[number] = pull
                return
            }
            changes.config = pull.config
            driver?.handle(.engine(.pulled(number, changes)), at: now)
        }
    }

    // MARK: - What it shows

    private var state: State { driver.map { State(of: $0) } ?? State() }
}

/// A device as the app and the judge see it.
private struct State: Equatable {
    private var values: [Key: PropertyListValue] = [:]
    /// Of the keys that have parts.
    private var records: [Key: PropertyListValue] = [:]
    private var waiting: [Key] = []
    private var cursor: String?
    private var isConnected: Bool?
    private var diskError: String?

    init() {}

    init(of driver: Driver) {
        let engine = driver.engine
        diskError = driver.status.diskFailure
        let withParts = Set(engine.contents.keys.filter(\.isPart).map(\.whole))
        values = engine.values
        records = engine.contents.filter { withParts.contains($0.key.whole) }
        waiting = engine.ownRecords.sorted()
        cursor = engine.meta.cursor?.text
        isConnected = [.connected, .polling].contains(engine.status.link.state)
    }

    /// Nothing if no app runs.
    func fields(after before: State?) -> [String: Any] {
        guard let isConnected else { return [:] }
        let same = values.filter { before?.values[$0.key] == $0.value }
        return [
            "values": Self.fields(of: values.filter { same[$0.key] == nil }),
            "unchanged": same.keys.map(\.string), "diskError": diskError ?? NSNull(),
            "records": Self.fields(of: records),
            "waiting": waiting.map(Self.name), "cursor": cursor ?? NSNull(),
            "isConnected": isConnected,
        ]
    }

    private static func fields(of contents: [Key: PropertyListValue]) -> [[String: Any]] {
        contents.sorted { $0.key < $1.key }.map { key, value in
            let json = WireFormat.json.encode(WireValue(value))
            var record: [String: Any] = name(key)
            record["value"] = try? JSONSerialization.jsonObject(with: Data(json))
            return record
        }
    }

    private static func name(_ key: Key) -> [String: String] {
        var name = ["key": key.whole.string]
        name["part"] = key.part?.text.string
        return name
    }
}

extension ClockReading {
    fileprivate init(_ command: [String: Any]) throws {
        guard let wall = command["wall"] as? Int64, let uptime = command["uptime"] as? Int64,
            let boot = (command["boot"] as? String).flatMap({ UInt64($0) })
        else { throw ConformanceClient.Trouble.unknownCommand("\(command)") }
        self.init(wall: wall, uptime: uptime, boot: boot)
    }
}
