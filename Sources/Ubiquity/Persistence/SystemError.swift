// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// What the system said when it refused something.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A few words without a final point, such as "Permission denied".
    package var description: String
    /// The value of `errno`; nil: it is not known.
    package var code: Int32?

    package init(_ description: String) { self.description = description }

    /// - Parameter code: A value of `errno`.
    package init(_ code: Int32) {
        self.init(String(cString: strerror(code)))
        self.code = code
    }
}
