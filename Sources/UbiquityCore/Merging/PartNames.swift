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
        let number = String(count, radix: 36)
        let digits = String(repeating: "0", count: max(0, 7 - number.count)) + number
        return PartID("\(policy.rawValue)\(run).\(digits)")!
    }
}
