// SPDX-License-Identifier: Apache-2.0

/// Why a request to the server did not get what it was for.
package struct LinkFailure: Error, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// No answer, or none that could be understood: no route, no server, cut off, timed out.
        case unreachable
        /// The credential is none, unknown or revoked.
        case unauthorized
        /// The server does not let this device into this store, or refuses for good what was sent.
        case refused
        /// The cursor does not hold any more: its history is another one, or deletions since it
        /// are forgotten.
        case cursorGone(isOtherHistory: Bool)
        case clockAhead(serverMilliseconds: Int64)
        /// The server asks to come again after so many milliseconds.
        case busy(retryAfterMilliseconds: Int64)
    }

    package var kind: Kind
    /// A sentence for people, without a final point.
    package var detail: String

    package init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }
}
