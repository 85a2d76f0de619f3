// SPDX-License-Identifier: Apache-2.0

/// Why a request to the server did not get what it was for.
package struct LinkFailure: Error, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// No answer, or none that could be understood: no route, no server, cut off.
        case unreachable
        /// For some time no byte has moved, or somebody on the way gave up waiting.
        case timedOut
        /// The credential is none, unknown or revoked.
        case unauthorized
        /// The server does not let this device into this store, or refuses for good what was sent.
        case refused
        /// The request is larger than the server, or something on the way to it, takes.
        case tooLarge
        /// The cursor does not hold any more: its history is another one, or deletions since it
        /// are forgotten.
        case cursorGone(isOtherHistory: Bool)
        case clockAhead(serverMilliseconds: Int64)
        /// The server asks to come again after so many milliseconds.
        case busy(retryAfterMilliseconds: Int64)
        /// The account has as many streams as it may have; requests are answered all the same.
        case tooManyStreams(retryAfterMilliseconds: Int64)
    }

    package var kind: Kind
    /// A sentence for people, on one line and without a final point; a server may have written it.
    package var detail: String
    /// The keys whose writes a round trip covered and the server refused.
    package var refusedKeys: Set<Key>

    /// Of a server's sentence, in Unicode scalars.
    static let detailMax = 1_000

    package init(_ kind: Kind, _ detail: String, refusedKeys: Set<Key> = []) {
        self.kind = kind
        self.detail = detail.clipped(to: Self.detailMax).visible()
        self.refusedKeys = refusedKeys
    }
}
