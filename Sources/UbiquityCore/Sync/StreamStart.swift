// SPDX-License-Identifier: Apache-2.0

/// What a stream begins with.
///
/// A listener is subscribed first, and then the store is read: what is committed between the two
/// comes twice, and its revision tells. The other way round it would not come at all.
package struct StreamStart: Hashable, Sendable {
    /// What to send first.
    package let messages: [StreamMessage]
    private let revision: Int64

    /// - Parameter isResumed: Whether the listener named a cursor; else these are the whole store.
    package init(_ changes: ChangeSet, isResumed: Bool, _ config: ServerConfig) {
        revision = Position(changes.cursor)?.revision ?? 0
        let ready = StreamMessage.ready(changes.cursor, config)
        messages = isResumed && changes.records.isEmpty ? [ready] : [.changes(changes), ready]
    }

    /// Whether a commit that the subscription brought is not among what the stream began with.
    package func isNews(_ revision: Int64) -> Bool { revision > self.revision }
}
