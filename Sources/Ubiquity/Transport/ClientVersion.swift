// SPDX-License-Identifier: Apache-2.0

/// The version of this library and of the program, as sent to servers.
package enum ClientVersion {
    package static let text = "0.2.0"
}
