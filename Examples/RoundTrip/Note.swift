// SPDX-License-Identifier: Apache-2.0

/// A note that a person wrote. Title and text belong together: no device ever shows the title of
/// one note with the text of another.
struct Note: Codable, Hashable, Sendable {
    var title = ""
    var text = ""
}
