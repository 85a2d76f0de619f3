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
        /// The account's values are sealed with the key of this generation, or with none if it is 0,
        /// and the request was made for another.
        case sealed(generation: UInt32)
        /// The server asks to retry after this many milliseconds.
        case busy(retryAfterMilliseconds: Int64)
        /// The account has reached its maximum of streams. Requests are still answered.
        case tooManyStreams(retryAfterMilliseconds: Int64)
    }

    package var kind: Kind
    /// A sentence for people, on one line and without a full stop. It may come from a server.
    @Exact package var detail: String
    /// The keys of a round trip whose writes the server refused.
    package var refusedKeys: Set<Key>
    /// The server's code of the problem; nil if it reported none that is known.
    @Exact package var code: String? = nil

    /// The maximum length of a server's message, in Unicode scalars.
    static let detailMax = 1_000

    package init(_ kind: Kind, _ detail: String, refusedKeys: Set<Key> = []) {
        self.kind = kind
        self.detail = detail.clipped(to: Self.detailMax).visible()
        self.refusedKeys = refusedKeys
    }
}

extension LinkFailure {
    /// Whether an answer with this HTTP status means the same from the server and from something in
    /// front of it. Of the others, those with a problem of the protocol are the server's: a page to
    /// sign in to a network, or a gateway's, says nothing about this device.
    package static func isFromAnybody(_ status: Int) -> Bool {
        [408, 413, 429].contains(status) || status >= 500
    }
}

extension LinkFailure.Kind {
    /// The kind that the HTTP status of an unsuccessful answer means, if its problem says no more.
    /// - Parameter retryAfterMilliseconds: How long the answer says to wait; nil if it does not.
    package init(status: Int, retryAfterMilliseconds wait: Int64?) {
        self =
            switch status {
            case 401: .unauthorized
            case 400, 403, 404, 409, 415, 422: .refused
            case 408, 504: .timedOut
            case 410: .cursorGone(isOtherHistory: false)
            case 413: .tooLarge
            case 429: .busy(retryAfterMilliseconds: wait ?? 1_000)
            case 503, 507: .busy(retryAfterMilliseconds: wait ?? 5_000)
            default: .unreachable
            }
    }
}
