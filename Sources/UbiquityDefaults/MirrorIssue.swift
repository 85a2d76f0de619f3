// SPDX-License-Identifier: Apache-2.0

/// Why one key is not mirrored, or a value of it was not. The other keys go on.
public struct MirrorIssue: Hashable, Sendable, CustomStringConvertible {
    /// What kind of trouble it is.
    public enum Kind: String, Hashable, Sendable {
        /// The value is no property list, or the preferences cannot have it.
        case value
        /// The store refuses the value, because the key is too long or the store is full. The
        /// preferences keep it.
        case refused
        /// Another mirror has the key, or another key that the preferences take for the same.
        case taken
        /// A change waited when the device came to another account, which must not get it: the
        /// preferences have that account's value now.
        case discarded
    }

    /// The key.
    public var key: String
    /// What kind of trouble it is.
    public var kind: Kind
    /// One sentence for people.
    public var description: String
}
