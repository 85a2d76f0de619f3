// SPDX-License-Identifier: Apache-2.0

/// The reason a key, or a value of it, is not mirrored. The other keys are not affected.
public struct MirrorIssue: Hashable, Sendable, CustomStringConvertible {
    /// The kind of an issue.
    public enum Kind: String, Hashable, Sendable {
        /// The value is not a property list, or the preferences cannot hold it.
        case value
        /// The store refuses the value, because the key is too long or the store is full. The
        /// preferences keep it.
        case refused
        /// Another mirror has the key, or another key that the preferences consider equal.
        case taken
        /// A change was waiting when the device switched to another account, which must not get it.
        /// The preferences have that account's value now.
        case discarded
    }

    /// The key.
    public var key: String
    /// The kind of the issue.
    public var kind: Kind
    /// A sentence for people.
    public var description: String
}
