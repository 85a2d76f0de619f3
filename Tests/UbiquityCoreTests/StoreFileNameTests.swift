// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@Suite struct `The file of a store` {
    private func name(_ identifier: String, among names: [String] = []) -> String {
        StoreFileName.name(of: identifier, among: names)
    }

    @Test func `is called by its identifier`() {
        #expect(name("TEAM.com.example.app") == "TEAM.com.example.app.sqlite")
        #expect(
            StoreFileName.identifier(of: "TEAM.com.example.app.sqlite") == "TEAM.com.example.app")
        #expect(StoreFileName.identifier(of: "TEAM.com.example.app.sqlite-wal") == nil)
    }

    @Test(arguments: 1...255)
    func `has a name that a disk can have, with all that is appended, however long`(count: Int)
        throws
    {
        let identifier = String(repeating: "a", count: count)
        _ = try StoreIdentifier(identifier)
        for appended in ["-wal", "-shm", "-journal", ".lease", ".bell"] {
            #expect((name(identifier) + appended).utf8.count <= 255)
        }
        #expect((count <= 240) == (name(identifier) == identifier + ".sqlite"))
    }

    @Test func `is another for identifiers that differ only at their ends`() {
        let long = String(repeating: "a", count: 254)
        #expect(name(long + "b") != name(long + "c"))
        #expect(name(long + "b") != name(long))
        #expect(name(long + "b") == name(long + "b", among: [name(long), name(long + "c")]))
        #expect(
            StoreFileName.identifier(of: name(long)) == String(repeating: "a", count: 200) + "…")
    }

    /// Disks of Macs and of Windows take the two names for one.
    @Test func `is another for identifiers that differ only in the case of letters`() {
        let first = name("TEAM.App")
        let second = name("team.app", among: [first])
        #expect(first == "TEAM.App.sqlite")
        #expect(second.lowercased() != first.lowercased())
        #expect(StoreFileName.identifier(of: second) == "team.app")
        // Whichever is opened later.
        for names in [[first, second], [second, first]] {
            #expect(name("TEAM.App", among: names) == first)
            #expect(name("team.app", among: names) == second)
        }
        #expect(name("team.app", among: [second]) == second)
        #expect(name("Team.App", among: [first, second]) != second)
    }

    @Test func `keeps its name forever`() {
        let long = String(repeating: "x", count: 250)
        #expect(name(long) == String(repeating: "x", count: 200) + "~3b5ad17216035bad.sqlite")
    }
}
