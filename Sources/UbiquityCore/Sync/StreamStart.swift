// SPDX-License-Identifier: Apache-2.0

/// The beginning of a stream.
///
/// A listener is subscribed before the store is read. A commit between the two arrives twice and is
/// recognised by its revision. In the reverse order it would be missed.
package struct StreamStart: Hashable, Sendable {
    /// The messages to send first.
    package let messages: [StreamMessage]
    private let revision: Int64

    /// - Parameter isResumed: Whether the listener named a cursor. If not, the changes are the
    ///   whole store.
    package init(_ changes: ChangeSet, isResumed: Bool, _ config: ServerConfig) {
        revision = Position(changes.cursor)?.revision ?? 0
        let ready = StreamMessage.ready(changes.cursor, config)
        messages = isResumed && changes.records.isEmpty ? [ready] : [.changes(changes), ready]
    }

    /// Whether a commit from the subscription is not part of the beginning.
    package func isNews(_ revision: Int64) -> Bool { revision > self.revision }
}
