// SPDX-License-Identifier: Apache-2.0

/// A person's account in a ``TestCloud``.
public struct TestAccount: Hashable, Sendable {
    /// The account's name.
    public let name: String
    let number: Int
    /// The cloud that the account belongs to.
    private let cloud: CloudID

    init(name: String, number: Int, world: TestWorld) {
        self.name = name
        self.number = number
        cloud = world.name
    }

    func isOf(_ world: TestWorld) -> Bool { cloud == world.name }
}
