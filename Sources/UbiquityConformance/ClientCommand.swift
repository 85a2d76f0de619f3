// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityCore
import UbiquityWire

/// A command to the client, one line of JSON. Protocol/conformance.md describes each.
enum ClientCommand {
    /// A new world: all devices are forgotten. None will have more processes than this.
    case begin(processes: Int)
    case device(Int, process: Int, ClockReading, Event)

    enum Event {
        case start(Start)
        /// Ends at once. Whether the save under way is on the disk.
        case kill(keepsSave: Bool)
        case write([Write])
        case sync(id: Int)
        /// The app asks whether everything is on the disk.
        case synchronize(id: Int)
        case saved
        /// The save under way meets this.
        case notSaved(DiskFailure)
        /// The read under way has succeeded, or has failed.
        case read(Bool)
        /// Another process may have saved.
        case fileChanged
        case leading(Bool)
        case answer(request: Int, HTTPAnswer)
        case event(request: Int, name: String, data: [UInt8])
        /// The stream was ended by the server.
        case end(request: Int)
        /// The request or its stream broke off; true for a time-out.
        case fail(request: Int, isTimeout: Bool)
        case wake
        /// The device has got the keys of the account.
        case unlock(Keyring)
    }

    struct Start {
        var account: String
        var name: DeviceID
        var credential: String
        var store: String
        var seed: UInt64
        var firstSync: FirstSyncPolicy
        /// The keys that the app declares a policy for at its start.
        var policies: [Key: MergePolicy]
        /// Nil if the account is not sealed, or if the device does not have its keys yet.
        var keyring: Keyring?
    }

    struct Write {
        var key: Key
        var content: Content
        /// The policy of the write, and the value that the app started from.
        var merging: (policy: MergePolicy, base: PropertyListValue?)?
    }
}

/// An answer of the server, as it is on the wire.
struct HTTPAnswer {
    var status: Int
    var headers: [String: String]
    var body: [UInt8]
}

extension ClientCommand {
    var line: String {
        switch self {
        case .begin(let processes): #"{"do":"begin","processes":\#(processes)}"#
        case .device(let number, let process, let now, let event):
            "{" + event.fields + #","boot":\#(Self.text("\(now.boot)")),"device":\#(number)"#
                + (process == 0 ? "" : #","process":\#(process)"#)
                + #","uptime":\#(now.uptime),"wall":\#(now.wall)}"#
        }
    }

    fileprivate static func text(_ text: String) -> String {
        let data = try? JSONSerialization.data(withJSONObject: text, options: .fragmentsAllowed)
        return data.map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }

    fileprivate static func value(_ value: PropertyListValue) -> String {
        String(decoding: WireFormat.json.encode(WireValue(value)), as: UTF8.self)
    }
}

extension ClientCommand.Event {
    fileprivate var fields: String {
        func text(_ value: String) -> String { ClientCommand.text(value) }
        switch self {
        case .start(let start):
            let policies = start.policies.sorted { $0.key < $1.key }
                .map { "\(text($0.key.string)):\(text("\($0.value.rawValue)"))" }
            return #""do":"start","account":\#(text(start.account)),"name":"\#(start.name)","#
                + #""credential":\#(text(start.credential)),"store":\#(text(start.store)),"#
                + #""seed":"\#(String(start.seed, radix: 16))","#
                + #""firstSync":"\#(start.firstSync.rawValue)","#
                + #""policies":{\#(policies.joined(separator: ","))}"#
                + (start.keyring.map { "," + Self.keys($0) } ?? "")
        case .kill(let keepsSave): return #""do":"kill","keepsSave":\#(keepsSave)"#
        case .write(let writes):
            return #""do":"write","writes":[\#(writes.map(\.text).joined(separator: ","))]"#
        case .sync(let id): return #""do":"sync","id":\#(id)"#
        case .synchronize(let id): return #""do":"synchronize","id":\#(id)"#
        case .saved: return #""do":"saved""#
        case .notSaved(let failure):
            return #""do":"notSaved","how":"\#(failure.rawValue)""#
        case .read(let isRead): return #""do":"\#(isRead ? "read" : "notRead")""#
        case .fileChanged: return #""do":"fileChanged""#
        case .leading(let isLeading): return #""do":"leading","isLeading":\#(isLeading)"#
        case .answer(let request, let answer):
            let headers = answer.headers.sorted { $0.key < $1.key }
                .map { "\(text($0.key)):\(text($0.value))" }.joined(separator: ",")
            return #""do":"answer","request":\#(request),"status":\#(answer.status),"#
                + #""headers":{\#(headers)},"#
                + #""body":\#(text(String(decoding: answer.body, as: UTF8.self)))"#
        case .event(let request, let name, let data):
            return #""do":"event","request":\#(request),"name":"\#(name)","#
                + #""data":\#(text(String(decoding: data, as: UTF8.self)))"#
        case .end(let request): return #""do":"end","request":\#(request)"#
        case .fail(let request, let isTimeout):
            let why = isTimeout ? "timeout" : "unreachable"
            return #""do":"fail","request":\#(request),"why":"\#(why)""#
        case .wake: return #""do":"wake""#
        case .unlock(let keyring): return #""do":"unlock","# + Self.keys(keyring)
        }
    }

    private static func keys(_ keyring: Keyring) -> String {
        guard case .dictionary(let generations) = keyring.fields else { return "" }
        let keys = generations.sorted { $0.key < $1.key }.compactMap { generation, key in
            guard case .string(let key) = key else { return nil as String? }
            return #""\#(generation.string)":"\#(key.string)""#
        }
        return #""keys":{\#(keys.joined(separator: ","))}"#
    }
}

extension ClientCommand.Write {
    fileprivate var text: String {
        var text = #"{"key":\#(ClientCommand.text(key.string)),"#
        text += content.value.map { #""value":\#(ClientCommand.value($0))"# } ?? #""deleted":true"#
        if let merging {
            text += #","policy":"\#(merging.policy.rawValue)""#
            if let base = merging.base { text += #","base":\#(ClientCommand.value(base))"# }
        }
        return text + "}"
    }
}
