// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity

/// The first of the numbered promises, which need no server. The others are in the end-to-end tests.
@Suite struct ContractTests {
    private let local: LocalStore
    private var store: UbiquitousKeyValueStore { local.store }

    init() throws { local = try LocalStore() }

    /// Vector 1.
    @Test func `an empty store reads as false, 0, 0.0 and nil, and represents nothing`() {
        #expect(store.bool(forKey: "a") == false)
        #expect(store.longLong(forKey: "a") == 0)
        #expect(store.double(forKey: "a") == 0)
        #expect(store.object(forKey: "a") == nil)
        #expect(store.string(forKey: "a") == nil)
        #expect(store.array(forKey: "a") == nil)
        #expect(store.dictionary(forKey: "a") == nil)
        #expect(store.data(forKey: "a") == nil)
        #expect(store.object(forKey: "") == nil)
        #expect(store.dictionaryRepresentation.isEmpty)
    }

    /// Vector 2.
    @Test func `"YES", "true", "1", "y" and 1.0 read as true, "no", "" and 0.0 as false`() {
        for string in ["YES", "true", "1", "y"] {
            store.set(string, forKey: "a")
            #expect(store.bool(forKey: "a"), "\(string)")
        }
        for string in ["no", ""] {
            store.set(string, forKey: "a")
            #expect(!store.bool(forKey: "a"), "\(string)")
        }
        store.set(1.0, forKey: "a")
        #expect(store.bool(forKey: "a"))
        store.set(0.0, forKey: "a")
        #expect(!store.bool(forKey: "a"))
    }

    /// Vector 3.
    @Test
    func `2.67 reads as 2, "123" as 123, true as 1 and 1.0, "123.4" as 123.4, "abc" as 0`() {
        store.set(2.67, forKey: "a")
        #expect(store.longLong(forKey: "a") == 2)
        #expect(store.double(forKey: "a") == 2.67, "reading never writes back")
        store.set("123", forKey: "a")
        #expect(store.longLong(forKey: "a") == 123)
        #expect(store.object(forKey: "a") as? String == "123", "reading never writes back")
        store.set(true, forKey: "a")
        #expect(store.longLong(forKey: "a") == 1)
        #expect(store.double(forKey: "a") == 1)
        store.set("123.4", forKey: "a")
        #expect(store.double(forKey: "a") == 123.4)
        store.set("abc", forKey: "a")
        #expect(store.longLong(forKey: "a") == 0)
        #expect(store.double(forKey: "a") == 0)
    }

    /// Vector 4.
    @Test func `123 reads as "123"; data has no string, an array no data, "x" no array`() {
        store.set(Int64(123), forKey: "a")
        #expect(store.string(forKey: "a") == "123")
        store.set(Data([1]), forKey: "a")
        #expect(store.string(forKey: "a") == nil)
        store.set([1], forKey: "a")
        #expect(store.data(forKey: "a") == nil)
        store.set("x", forKey: "a")
        #expect(store.array(forKey: "a") == nil)
        #expect(store.dictionary(forKey: "a") == nil)
    }

    /// Vector 5. That no request follows is shown with a server, among the tests of two devices.
    @Test func `setting nil removes; removing an absent key leaves no trace`() {
        for key in ["any", "string", "data", "array", "dictionary"] {
            store.set("value", forKey: key)
        }
        store.set(nil as Any?, forKey: "any")
        store.set(nil as String?, forKey: "string")
        store.set(nil as Data?, forKey: "data")
        store.set(nil as [Any]?, forKey: "array")
        store.set(nil as [String: Any]?, forKey: "dictionary")
        #expect(store.dictionaryRepresentation.isEmpty)

        let waiting = store.status.pendingKeys
        store.removeObject(forKey: "absent")
        store.set(nil as Any?, forKey: "absent too")
        #expect(store.status.pendingKeys == waiting)
    }
}
