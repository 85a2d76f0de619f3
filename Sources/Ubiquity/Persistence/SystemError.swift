// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A failed system call.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A few words without a full stop, such as "Permission denied".
    package var description: String
    /// The value of `errno`; nil if unknown.
    package var code: Int32?

    package init(_ description: String) { self.description = description }

    /// - Parameter code: A value of `errno`.
    package init(_ code: Int32) {
        self.init(String(cString: strerror(code)))
        self.code = code
    }
}
