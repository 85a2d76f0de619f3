// SPDX-License-Identifier: Apache-2.0

/// The reason a server refused a request, for programs: ``WireProblem/code``.
package enum ProblemCode: String, CaseIterable, Sendable {
    case malformed
    case credentialMissing = "credential-missing"
    case credentialInvalid = "credential-invalid"
    case credentialExpired = "credential-expired"
    case codeInvalid = "code-invalid"
    /// Nobody has approved the sign-in request yet.
    case signInPending = "sign-in-pending"
    case signInDenied = "sign-in-denied"
    case tokenInvalid = "token-invalid"
    case tokenExpired = "token-expired"
    case tokenNotTaken = "token-not-taken"
    case notYours = "not-yours"
    case appNotRegistered = "app-not-registered"
    case notFound = "not-found"
    case methodNotAllowed = "method-not-allowed"
    case notAcceptable = "not-acceptable"
    case requestTooSlow = "request-too-slow"
    case accountExists = "account-exists"
    case clockAhead = "clock-ahead"
    /// The request was made for another generation of the account's key: ``WireProblem/generation``.
    case sealed
    /// The request did not show the proof of the account's key.
    case proof
    /// The store has not been sealed with the account's key yet.
    case storeUnsealed = "store-unsealed"
    /// The store has changed since it was read.
    case storeChanged = "store-changed"
    case cursorOtherHistory = "cursor-other-history"
    case cursorCompacted = "cursor-forgotten"
    case historyForgotten = "history-forgotten"
    case historyOff = "history-off"
    case bodyTooLarge = "body-too-large"
    /// The account or the server has as many things of a kind as it may have.
    case tooMany = "too-many"
    case unsupportedMediaType = "unsupported-media-type"
    case hostForeign = "host-foreign"
    case tooManyRequests = "too-many-requests"
    case tooManyStreams = "too-many-streams"
    case headerTooLarge = "header-too-large"
    case unavailable
    case storageFull = "storage-full"

    /// The HTTP status of an answer with this code.
    package var status: Int {
        switch self {
        case .malformed: 400
        case .credentialMissing, .credentialInvalid, .credentialExpired, .codeInvalid,
            .tokenInvalid, .tokenExpired, .tokenNotTaken:
            401
        case .notYours, .appNotRegistered, .signInDenied, .proof: 403
        case .notFound, .historyOff: 404
        case .methodNotAllowed: 405
        case .notAcceptable: 406
        case .requestTooSlow: 408
        case .accountExists, .clockAhead, .sealed, .signInPending, .storeChanged: 409
        case .cursorOtherHistory, .cursorCompacted, .historyForgotten: 410
        case .bodyTooLarge, .tooMany: 413
        case .unsupportedMediaType: 415
        case .hostForeign: 421
        case .tooManyRequests, .tooManyStreams: 429
        case .headerTooLarge: 431
        case .storeUnsealed, .unavailable: 503
        case .storageFull: 507
        }
    }
}
