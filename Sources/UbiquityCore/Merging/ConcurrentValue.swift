// SPDX-License-Identifier: Apache-2.0

/// One of several values written without knowledge of one another.
package struct ConcurrentValue: Hashable, Sendable {
    package var value: PropertyListValue
    package var stamp: Stamp

    package init(value: PropertyListValue, stamp: Stamp) {
        self.value = value
        self.stamp = stamp
    }
}

/// An app's own rule: merges the earlier and the later of two values. It must give the same result
/// for the same values on every device.
package typealias Resolver =
    @Sendable (_ earlier: ConcurrentValue, _ later: ConcurrentValue) -> PropertyListValue
