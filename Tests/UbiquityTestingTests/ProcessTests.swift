// SPDX-License-Identifier: Apache-2.0

import Testing
import Ubiquity
import UbiquityTesting

@Suite("A process")
struct ProcessTests {
    private let two = TwoDevices()

    @Test func `that is killed before its save has lost that, and nothing else`() {
        two.a.set("saved", forKey: "k")
        two.cloud.settle()
        two.a.set("unsaved", forKey: "k")
        #expect(two.a.string(forKey: "k") == "unsaved")
        two.phone.kill()
        let a = two.phone.openStore(TwoDevices.identifier)
        #expect(a.string(forKey: "k") == "saved")
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "saved")
        #expect(a.status.connection == .connected)
    }

    @Test func `that is killed after synchronize has lost nothing`() {
        two.phone.goOffline()
        two.a.set("x", forKey: "k")
        #expect(two.a.synchronize())
        two.phone.kill()
        two.phone.goOnline()
        let a = two.phone.openStore(TwoDevices.identifier)
        #expect(a.string(forKey: "k") == "x")
        #expect(a.status.pendingKeys == ["k"])
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
    }

    @Test func `has registered defaults until it ends, and no device gets them`() {
        two.a.register(defaults: ["k": "standard"])
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "standard")
        #expect(two.b.object(forKey: "k") == nil)
        two.b.set("b's", forKey: "k")
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "b's")
        two.b.removeObject(forKey: "k")
        two.cloud.settle()
        #expect(two.phone.app.notifications.map(\.changedKeys) == [["k"], ["k"]])
        #expect(two.a.string(forKey: "k") == "standard")
        two.phone.restart()
        #expect(two.phone.openStore(TwoDevices.identifier).object(forKey: "k") == nil)
    }

    @Test func `that quits saves first`() {
        two.a.set("x", forKey: "k")
        two.phone.app.quit()
        #expect(two.phone.openStore(TwoDevices.identifier).string(forKey: "k") == "x")
    }

    @Test func `goes on after its device restarted, with edits in their order`() {
        two.phone.goOffline()
        two.a.set("first", forKey: "k")
        two.cloud.settle()
        two.phone.restart()
        let a = two.phone.openStore(TwoDevices.identifier)
        a.set("second", forKey: "k")
        two.phone.goOnline()
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "second")
    }

    @Test func `tells the other of the same device, and both sync by one connection`() {
        let widget = two.phone.newProcess("widget")
        let w = widget.openStore(TwoDevices.identifier)
        w.set("from the widget", forKey: "k")
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "from the widget")
        #expect(two.b.string(forKey: "k") == "from the widget")
        #expect(
            two.phone.app.notifications.map(\.news) == [
                News(reason: NSUbiquitousKeyValueStoreServerChange, keys: ["k"])
            ])
        #expect(widget.notifications.isEmpty)
        #expect(two.a.status.holdsConnection && !w.status.holdsConnection)

        two.b.set("from afar", forKey: "k")
        two.cloud.settle()
        #expect(w.string(forKey: "k") == "from afar")
        #expect(widget.notifications.map(\.changedKeys) == [["k"]])
    }

    @Test func `takes the connection over from one that is killed`() {
        let w = two.phone.newProcess("widget").openStore(TwoDevices.identifier)
        two.cloud.settle()
        two.phone.app.kill()
        w.set("x", forKey: "k")
        two.cloud.settle()
        #expect(w.status.holdsConnection)
        #expect(two.b.string(forKey: "k") == "x")
    }

    @Test func `goes on in memory while the disk is full, and saves when there is room`() {
        two.phone.isDiskFull = true
        two.a.set("x", forKey: "k")
        #expect(!two.a.synchronize())
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "x")
        #expect(two.a.status.diskError != nil)
        #expect(two.b.string(forKey: "k") == nil)
        two.phone.isDiskFull = false
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
        #expect(two.a.status.diskError == nil)
    }

    @Test func `has one object for a store until it ends`() {
        #expect(two.phone.openStore(TwoDevices.identifier) === two.a)
        two.phone.kill()
        #expect(two.phone.openStore(TwoDevices.identifier) !== two.a)
    }
}
