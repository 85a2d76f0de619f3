// SPDX-License-Identifier: Apache-2.0

extension [String: String] {
    /// The value of an environment variable; nil also if it is empty.
    package subscript(nonEmpty name: String) -> String? {
        self[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
