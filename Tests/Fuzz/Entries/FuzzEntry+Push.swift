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
        var state = StoreState()
        guard
            let first = try? state.admit(push, records: [:], folded: [], by: rule, in: 1)
        else { return }
        try must(first.results.count == push.transactions.count, "a transaction has no result")
        var usage = Usage()
        for record in first.writes {
            usage.replace(nil, by: record.content.value, of: record.key)
        }
        try must(usage == state.usage, "the usage does not add up")
        guard !first.results.contains(where: \.isRefused) else { return }
        // No device can know a mark of this history yet.
        state.lineage = Lineage(revision: 1)
        let again = try state.admit(
            push, records: Dictionary(uniqueKeysWithValues: first.writes.map { ($0.key, $0) }),
            folded: first.folded, by: rule, in: 1)
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
