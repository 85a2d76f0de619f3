// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Ubiquity

/// The time that a device takes from opening a full store until all of it is readable.
struct Opening: Encodable {
    private static let secondsMax = 30

    /// The call that opens, in nanoseconds.
    private var opened: Int64
    /// From the same start, until every value was read, and was right.
    private var whole: Int64

    /// In a process that has opened nothing before.
    static func measure(home: String) throws -> Opening {
        let start = nanoseconds()
        let store = try SampleStore.open(home: home)
        let opened = nanoseconds() - start
        let lastKey = SampleStore.keys.last!
        while store.string(forKey: lastKey) == nil || !SampleStore.isWhole(store) {
            guard nanoseconds() - start < Int64(secondsMax) * 1_000_000_000 else {
                throw Trouble("the store was not whole after \(secondsMax) s")
            }
            usleep(200)
        }
        let whole = nanoseconds() - start
        // So that the next opening finds all of it on the disk.
        store.synchronize()
        return Opening(opened: opened, whole: whole)
    }
}
