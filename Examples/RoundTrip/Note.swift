// SPDX-License-Identifier: Apache-2.0

/// What a person wrote. Title and text belong together: no device ever shows one of this note and one
/// of another.
struct Note: Codable, Hashable, Sendable {
    var title = ""
    var text = ""
}
