// SPDX-License-Identifier: Apache-2.0

package import Foundation

extension Date {
    /// - Parameter milliseconds: Milliseconds since 1970.
    package init(milliseconds: Int64) {
        self.init(timeIntervalSince1970: Double(milliseconds) / 1_000)
    }
}
