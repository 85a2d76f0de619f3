// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

/// Tests which folder a device's values are in, as accounts come and go.
struct DeviceStateTests {
    private func account(_ name: String, device: String = "1") -> SignedInAccount {
        SignedInAccount(
            server: "http://s", account: name, accountName: name, device: device,
            deviceName: "d", credential: "c")
    }

    @Test func `a device that never signed in is in the first folder, which is nobody's`() {
        let state = DeviceState()
        #expect(state.signedIn == nil)
        #expect(state.folder == "1")
        #expect(state.folders.isEmpty)
    }

    @Test func `the first account takes over what was written before`() {
        var state = DeviceState()
        state.signIn(account("A"))
        #expect(state.folder == "1")
        #expect(state.folders == ["A": "1"])
        #expect(state.signedIn == account("A"))
    }

    @Test func `the fields of its file say all of it`() throws {
        var state = DeviceState()
        #expect(try DeviceState(fields: state.fields) == state)
        state.signIn(account("A"))
        var other = account("B", device: "2")
        other.certificates = "PEM"
        state.signIn(other, isSealed: true)
        #expect(try DeviceState(fields: state.fields) == state)
    }

    @Test func `signed out, the values stay where they are`() {
        var state = DeviceState()
        state.signIn(account("A"))
        #expect(state.signOut() == account("A"))
        #expect(state.signedIn == nil)
        #expect(state.folder == "1")
        #expect(state.signOut() == nil)
    }

    @Test func `the same account comes back to its folder, with its new credential`() {
        var state = DeviceState()
        state.signIn(account("A"))
        state.signOut()
        state.signIn(account("A", device: "2"))
        #expect(state.folder == "1")
        #expect(state.signedIn?.device == "2")
    }

    @Test(arguments: [true, false])
    func `another account has a folder of its own, and each returns to its own`(_ signsOut: Bool) {
        var state = DeviceState()
        for (name, folder) in [("A", "1"), ("B", "2"), ("A", "1"), ("C", "3"), ("B", "2")] {
            state.signIn(account(name))
            #expect(state.folder == folder)
            if signsOut { state.signOut() }
        }
    }

    @Test func `a wiped folder is to be removed as long as it exists`() {
        var state = DeviceState()
        state.signIn(account("A"))
        #expect(state.abandonedFolders(among: ["1"]) == [])
        _ = state.signOutWiping()
        #expect(state.folder == "2")
        #expect(state.abandonedFolders(among: ["1", "2"]) == ["1"])
        #expect(state.abandonedFolders(among: ["2"]) == [])
        state.signIn(account("B"))
        state.signIn(account("C"))
        #expect(state.abandonedFolders(among: ["1", "2", "3"]) == ["1"])
    }

    @Test func `what an account has parked stays, and what is no folder of the library's`() {
        var state = DeviceState()
        state.signIn(account("A"))
        state.signIn(account("B"))
        _ = state.signOutWiping()
        #expect(state.folder == "3")
        let names = ["1", "2", "3", "4", "02", "x", "-1", "0", ".DS_Store", "99999999999999999999"]
        #expect(state.abandonedFolders(among: names) == ["2"])
    }

    @Test func `a device that has lost its file removes nothing`() {
        var state = DeviceState()
        #expect(state.abandonedFolders(among: ["1", "2", "3"]) == [])
        state.signIn(account("A"))
        #expect(state.abandonedFolders(among: ["1", "2", "3"]) == [])
    }

    /// An account that was here before comes back where nobody had signed in since a wipe.
    @Test func `the folder of nobody is to be removed once an account leaves it for its own`() {
        var state = DeviceState()
        state.signIn(account("A"))
        state.signIn(account("B"))
        _ = state.signOutWiping()
        state.signIn(account("A"))
        #expect(state.abandonedFolders(among: ["1", "2", "3"]) == ["2", "3"])
    }

    // MARK: - Keys

    private static let keyring = Keyring([
        1: .account(Bytes32([UInt8](0..<32))!), 2: .account(Bytes32([UInt8](1...32))!),
    ])

    @Test func `the keys of an account come and go with its sign-in, and stay when it leaves`()
        throws
    {
        var state = DeviceState()
        try state.keep(Self.keyring)
        #expect(state.keyrings.isEmpty && state.sealedAccounts.isEmpty && state.keyring == nil)
        state.signIn(account("A"))
        #expect(state.keyring == nil)
        try state.keep(Self.keyring)
        #expect(state.keyring == Self.keyring)
        #expect(try DeviceState(fields: state.fields) == state)
        state.signOut()
        #expect(state.keyring == nil)
        state.signIn(account("B"))
        #expect(state.keyring == nil)
        let confined = Self.keyring.confined(to: [try StoreIdentifier("com.example.app")])
        try state.keep(confined)
        #expect(state.keyring == confined)
        #expect(try DeviceState(fields: state.fields) == state)
        state.signIn(account("A"))
        #expect(state.keyring == Self.keyring)
    }

    @Test func `a proposal gives no key, and stays when keys come from outside`() throws {
        var state = DeviceState()
        state.proposal = Self.keyring
        #expect(state.proposals.isEmpty)
        state.signIn(account("A"))
        state.proposal = Self.keyring
        #expect(state.proposal == Self.keyring && state.keyring == nil)
        #expect(try DeviceState(fields: state.fields) == state)
        state.signOut()
        #expect(state.proposal == nil)
        state.signIn(account("A"))
        try state.keep(Self.keyring)
        // Which of them is the account's, the server says.
        #expect(state.proposal == Self.keyring && state.keyring == Self.keyring)
        _ = state.signOutWiping()
        #expect(state.proposals.isEmpty && state.keyrings.isEmpty)
    }

    @Test func `keys from outside join those of the device, and others change nothing`() throws {
        var state = DeviceState()
        state.signIn(account("A"))
        try state.keep(Self.keyring)
        let next = try #require(Self.keyring.adding(Bytes32([UInt8](2...33))!, at: 1))
        try state.keep(next)
        try state.keep(Self.keyring)
        try state.keep(next.confined(to: [try StoreIdentifier("com.example.app")]))
        #expect(state.keyring == next)
        let kept = state
        let other = Keyring([9: .account(Bytes32([UInt8](0..<32))!)])
        #expect(throws: KeyringRefusal.unrelated) { try state.keep(other) }
        #expect(state == kept)
        // Of another account, they are the first.
        state.signIn(account("B"))
        try state.keep(other)
        #expect(state.keyring == other)
    }

    @Test func `a proposal that is adopted takes nothing from what came meanwhile`() throws {
        var state = DeviceState()
        state.signIn(account("A"))
        let (first, key) = (try #require(Self.keyring.roots[2]), Bytes32([UInt8](2...33))!)
        try state.keep(Keyring([2: first]))
        state.proposal = Keyring([2: first]).adding(key, at: 1)
        try state.keep(Self.keyring)
        let proposal = try #require(state.proposal)
        let store = try StoreIdentifier("a")
        func step(_ unsealed: [StoreIdentifier]) throws -> SealingStep {
            var session = try #require(state.sealing)
            defer { state.sealing = session }
            return session.mark(generation: 3, check: proposal.check, unsealed: unsealed)
        }
        #expect(try step([store]) == .seal(store))
        #expect(state.keyring == Self.keyring.adding(key, at: 1) && state.proposal == proposal)
        #expect(try step([]) == .done && state.proposal == nil)
    }

    @Test func `wiping an account removes its keys, and that it was sealed stays`() throws {
        var state = DeviceState()
        state.signIn(account("A"))
        try state.keep(Self.keyring)
        state.signIn(account("B"))
        try state.keep(Self.keyring)
        _ = state.signOutWiping()
        #expect(state.keyrings == ["A": Self.keyring])
        state.signIn(account("A"))
        _ = state.signOutWiping()
        #expect(state.keyrings.isEmpty && state.sealedAccounts == ["A", "B"])
        #expect(state.hadSealed && !DeviceState().hadSealed)
    }

    @Test func `what a session decides is put back for its account alone`() throws {
        var state = DeviceState()
        #expect(state.sealing == nil)
        state.signIn(account("A"))
        #expect(state.sealing == SealingSession(account: "A", keyring: nil))
        try state.keep(Self.keyring)
        #expect(state.sealing == SealingSession(account: "A", keyring: Self.keyring))
        let kept = state
        state.sealing = SealingSession(account: "B", keyring: nil)
        #expect(state == kept)
        state.signIn(account("B"), isSealed: true)
        #expect(state.sealing?.isSealed == true && state.sealedAccounts == ["A", "B"])
        state.signIn(account("A"))
        state.proposal = Self.keyring
        state.sealing?.unseal()
        #expect(state.keyring == nil && state.proposal == nil && !state.isSealed)
        #expect(state.sealedAccounts == ["B"] && state.hadSealed)
        state.sealing?.isSealed = true
        state.signOut()
        state.signIn(account("A"))
        #expect(state.isSealed && state.keyring == nil)
        #expect(try DeviceState(fields: state.fields) == state)
    }

    @Test func `a file without keys is one of before`() throws {
        var state = DeviceState()
        state.signIn(account("A"))
        guard case .dictionary(let fields) = state.fields else { return }
        #expect(Set(fields.keys) == ["signedIn", "folder", "folders"])
    }

    @Test func `damaged keys are not taken for none`() throws {
        let key = PropertyListValue.string("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
        #expect(throws: Never.self) { try Keyring(fields: .dictionary(["1": key])) }
        for damaged: PropertyListValue in [
            .string("1"), .dictionary(["": key]), .dictionary(["0": key]), .dictionary(["01": key]),
            .dictionary(["+1": key]), .dictionary(["-1": key]), .dictionary(["4294967296": key]),
            .dictionary(["1": .string("")]), .dictionary(["1": .string("AAAA")]),
            .dictionary(["1": .integer(1)]), .dictionary(["1": .array([])]),
            .dictionary(["1": .dictionary(["": key])]),
            .dictionary(["1": .dictionary(["a/b": key])]),
            .dictionary(["1": .dictionary(["a": .integer(1)])]),
            .dictionary(["1": .dictionary(["a": .dictionary([:])])]),
        ] {
            #expect(throws: StoredFieldError.self, "\(damaged)") { try Keyring(fields: damaged) }
            var fields = DeviceState().fields
            guard case .dictionary(var state) = fields else { return }
            state["keyrings"] = .dictionary(["A": damaged])
            fields = .dictionary(state)
            #expect(throws: StoredFieldError.self) { try DeviceState(fields: fields) }
        }
        guard case .dictionary(var state) = DeviceState().fields else { return }
        for (name, value): (ExactString, PropertyListValue) in [
            ("keyrings", .array([])), ("proposals", .string("")),
            ("sealedAccounts", .string("A")),
            ("sealedAccounts", .array([.integer(1)])),
        ] {
            let old = state.updateValue(value, forKey: name)
            #expect(throws: StoredFieldError.self) { try DeviceState(fields: .dictionary(state)) }
            state[name] = old
        }
    }

    @Test func `a file has at most so many keys`() throws {
        let key = Keyring.Root.account(Bytes32([UInt8](0..<32))!)
        func keyring(_ count: Int) -> Keyring {
            Keyring(Dictionary(uniqueKeysWithValues: (1...count).map { (UInt32($0), key) }))
        }
        let most = keyring(Keyring.generationsMax)
        #expect(try Keyring(fields: most.fields) == most)
        #expect(throws: StoredFieldError.otherForm) {
            try Keyring(fields: keyring(Keyring.generationsMax + 1).fields)
        }
        func stores(_ count: Int) throws -> Keyring {
            let pairs = try (1...count).map {
                (try StoreIdentifier("s\($0)"), Bytes32([UInt8](0..<32))!)
            }
            return Keyring([1: .stores(Dictionary(uniqueKeysWithValues: pairs))])
        }
        let widest = try stores(Keyring.storesMax)
        #expect(try Keyring(fields: widest.fields) == widest)
        #expect(throws: StoredFieldError.self) {
            try Keyring(fields: try stores(Keyring.storesMax + 1).fields)
        }
    }
}
