// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Why a measurement came to nothing.
struct Failure: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }

    /// With what the system says of the last call.
    static func system(_ call: String) -> Failure {
        Failure("\(call): \(String(cString: strerror(errno)))")
    }
}
