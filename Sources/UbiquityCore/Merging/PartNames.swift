// SPDX-License-Identifier: Apache-2.0

/// Names for new parts, which no other run of any app ever gives.
struct PartNames: Sendable {
    /// Of this run.
    private let run: String
    private var count = 0

    /// - Parameter run: Drawn by chance.
    init(run: UInt64) { self.run = DeviceID.hexadecimal(run) }

    /// That of the run itself.
    func own(_ policy: MergePolicy) -> PartID { PartID("\(policy.rawValue)\(run)")! }

    /// A new one, later in order than those before.
    mutating func next(_ policy: MergePolicy) -> PartID {
        count += 1
        return Self.numbered(count, own(policy))
    }

    /// In the order of their numbers, up to 36 to the seventh.
    static func numbered(_ number: Int, _ name: PartID) -> PartID {
        let digits = String(number, radix: 36)
        let zeros = String(repeating: "0", count: max(0, 7 - digits.count))
        return PartID("\(name).\(zeros)\(digits)")!
    }
}
