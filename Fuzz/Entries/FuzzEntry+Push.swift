// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

extension FuzzEntry {
    /// The body of a push, as the server takes it: decoded, and decided on.
    static func push(_ format: WireFormat) -> FuzzEntry {
        FuzzEntry("push-\(format.shortName)", stack: .deep, bytesMax: 16_384) {
            var seeds = try Samples.pushes().mapValues {
                format.encode(WirePush($0, author: Samples.device))
            }
            seeds["deepest"] = DeepestValue.push(format)
            return seeds
        } check: { bytes in
            guard
                let push = try? Push(
                    format.decode(WirePush.self, from: bytes), author: Samples.device)
            else { return }
            for record in push.transactions.flatMap(\.writes) {
                try must(
                    record.key.string.utf8.count <= Key.bytesMax, "a key is too long")
                try Laws.check(record)
            }
            try checkForms(push)
            try checkDecision(on: push)
        }
    }

    private static func checkForms(_ push: Push) throws {
        for format in WireFormat.allCases {
            let bytes = format.encode(WirePush(push, author: Samples.device))
            let again = try Push(
                format.decode(WirePush.self, from: bytes), author: Samples.device)
            try must(again == push, "a push changed in \(format)")
        }
    }

    /// Checks that what is accepted adds up, and that the same push again changes nothing if all of
    /// it was accepted.
    private static func checkDecision(on push: Push) throws {
        let rule = PushAdmission(limits: StoreLimits(), now: Samples.milliseconds)
        guard let decision = try? rule.decide(push, on: PushAdmission.Stored()) else { return }
        try must(
            decision.results.count == push.transactions.count, "a transaction has no result")
        var usage = Usage()
        for record in decision.writes {
            usage.replace(nil, by: record.content.value, of: record.key)
        }
        try must(usage == decision.usage, "the usage does not add up")
        guard !decision.results.contains(where: \.isRefused) else { return }
        let stored = PushAdmission.Stored(
            records: Dictionary(uniqueKeysWithValues: decision.writes.map { ($0.key, $0) }),
            usage: decision.usage, newest: decision.newest,
            folds: PushAdmission.Folds(
                increments: decision.folded, lineage: Lineage(revision: 1)))
        let again = try rule.decide(push, on: stored)
        try must(again.writes.isEmpty, "a push that came twice changed something")
    }
}

extension TransactionResult {
    fileprivate var isRefused: Bool { if case .refused = self { true } else { false } }
}

extension WireFormat {
    var shortName: String {
        switch self {
        case .json: "json"
        case .protobuf: "protobuf"
        }
    }
}
