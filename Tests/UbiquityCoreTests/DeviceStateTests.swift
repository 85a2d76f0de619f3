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
        state.signIn(other)
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
}
