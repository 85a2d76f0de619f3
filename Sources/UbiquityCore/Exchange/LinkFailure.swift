// SPDX-License-Identifier: Apache-2.0

/// The reason a request to the server failed.
package struct LinkFailure: Error, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// No intelligible response: no route, no server, or a broken connection.
        case unreachable
        /// No byte has moved for some time, or an intermediary gave up waiting.
        case timedOut
        /// The credential is missing, unknown or revoked.
        case unauthorized
        /// The server does not let this device use this store, or permanently refuses the request.
        case refused
        /// The request is larger than the server or an intermediary accepts.
        case tooLarge
        /// The cursor is no longer valid: it belongs to another history, or tombstones since it
        /// have been dropped.
        case cursorGone(isOtherHistory: Bool)
        case clockAhead(serverMilliseconds: Int64)
        /// The server asks to retry after this many milliseconds.
        case busy(retryAfterMilliseconds: Int64)
        /// The account has reached its maximum of streams. Requests are still answered.
        case tooManyStreams(retryAfterMilliseconds: Int64)
    }

    package var kind: Kind
    /// A sentence for people, on one line and without a full stop. It may come from a server.
    package var detail: String
    /// The keys of a round trip whose writes the server refused.
    package var refusedKeys: Set<Key>
    /// The server's code of the problem; nil if it reported none that is known.
    package var code: String?

    /// The maximum length of a server's message, in Unicode scalars.
    static let detailMax = 1_000

    package init(_ kind: Kind, _ detail: String, refusedKeys: Set<Key> = []) {
        self.kind = kind
        self.detail = detail.clipped(to: Self.detailMax).visible()
        self.refusedKeys = refusedKeys
    }
}
