// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
internal import Ubiquity
internal import UbiquityCore
internal import UbiquityHTTP
internal import UbiquityWire

extension FuzzEntry {
    /// An answer of a server, as a device takes it: decoded as each kind of answer that it may be,
    /// and given to the engine.
    static func answer(_ format: WireFormat) -> FuzzEntry {
        FuzzEntry("answer-\(format.shortName)", stack: .system, bytesMax: 16_384) {
            try Samples.answers(format)
        } check: { bytes in
            if let changes = try? ChangeSet(format.decode(WireChanges.self, from: bytes)) {
                try check(changes)
            }
            if let answer = try? PushAnswer(format.decode(WirePushAnswer.self, from: bytes)) {
                try check(answer)
            }
            if let config = try? format.decode(WireConfig.self, from: bytes) {
                try check(ServerConfig(config))
            }
            try checkFailure(bytes, format)
            try checkSmallMessages(bytes, format)
        }
    }

    private static func check(_ changes: ChangeSet) throws {
        for record in changes.records { try Laws.check(record) }
        for format in WireFormat.allCases {
            let bytes = format.encode(WireChanges(changes))
            let again = try ChangeSet(format.decode(WireChanges.self, from: bytes))
            try must(again == changes, "changes changed in \(format)")
        }
        var device = EngineTrial()
        try device.hear(.changes(changes))
        try device.connect()
        try device.pull(changes)
    }

    private static func check(_ answer: PushAnswer) throws {
        for format in WireFormat.allCases {
            let bytes = format.encode(WirePushAnswer(answer))
            let again = try PushAnswer(format.decode(WirePushAnswer.self, from: bytes))
            try must(again == answer, "an answer changed in \(format)")
        }
        var device = EngineTrial()
        try device.connect()
        try device.answer(answer)
    }

    /// A limit of 0 has no form: it is the default.
    private static func check(_ config: ServerConfig) throws {
        for format in WireFormat.allCases {
            let bytes = format.encode(WireConfig(config))
            let again = ServerConfig(try format.decode(WireConfig.self, from: bytes))
            try must(again == config, "a configuration changed in \(format)")
        }
        var device = EngineTrial()
        try device.connect(config)
        try device.write()
    }

    /// A refusal of any status, whatever the engine was doing.
    private static func checkFailure(_ bytes: [UInt8], _ format: WireFormat) throws {
        let address = try ServerAddress("http://127.0.0.1:7717")
        let fields = [
            ("content-type", format == .json ? "application/problem+json" : format.rawValue),
            ("retry-after", String(decoding: bytes.prefix(24), as: UTF8.self)),
        ]
        for status in [400, 401, 409, 410, 413, 429, 500, 503] {
            let failure = LinkFailure(
                HTTPAnswerHead(status: status, fields: fields), body: bytes, address)
            var device = EngineTrial()
            try device.connect()
            try device.fail(failure)
        }
    }

    private static func checkSmallMessages(_ bytes: [UInt8], _ format: WireFormat) throws {
        let types: [any Message.Type] = [
            WireSignInAnswer.self, WireNewAccountAnswer.self, WireStoreList.self,
            WireAccount.self, WireDevice.self, WireSignIn.self, WireNewAccount.self,
            WireReady.self, WireProblem.self,
        ]
        for type in types { try checkAgain(type, bytes, format) }
    }

    private static func checkAgain<M: Message>(
        _ type: M.Type, _ bytes: [UInt8], _ format: WireFormat
    ) throws {
        guard let message = try? format.decode(type, from: bytes) else { return }
        let encoded = format.encode(message)
        let again = try format.decode(type, from: encoded)
        try must(format.encode(again) == encoded, "a \(type) changed in \(format)")
    }
}
