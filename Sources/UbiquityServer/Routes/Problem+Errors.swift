// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore
internal import UbiquityWire

extension Problem {
    /// Translates any error for the client. The only place where the errors of the other parts of
    /// the server become problems.
    init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let error as WireError: self = .malformed("\(error).")
        case let error as StorageError: self.init(error)
        case let refusal as PushRefusal: self.init(refusal)
        case let refusal as SealingRefusal: self.init(refusal)
        case let refusal as AccessRefusal: self.init(refusal)
        case let error as HistoryForgotten: self.init(error)
        case let refusal as IdentityRefusal: self.init(refusal)
        case let error as TokenError: self.init(error)
        case let error as RateExceeded: self.init(error)
        case let error as HubError: self.init(error)
        case is Busy: self = .unavailable("The server is busy. Try again soon.")
        default: self = .unavailable("Something went wrong on the server. Try again later.")
        }
    }

    private init(_ error: StorageError) {
        switch error {
        case .accountExists:
            self.init(
                .accountExists,
                "An account with this name already exists. Ask for another code to sign in a "
                    + "device.")
        case .noSuchAccount: self.init(.notFound, "There is no account with this name.")
        case .noSuchDevice: self.init(.notFound, "The account has no such device.")
        case .noSuchApp: self.init(.notFound, "This app is not registered.")
        case .codeInvalid:
            self.init(
                .codeInvalid,
                "The code is wrong, has already been used, or has expired. Check it, or ask for a new one."
            )
        case .noSuchRequest:
            self.init(
                .notFound,
                "No device is waiting with this code. Compare it with what the device shows; a code "
                    + "is valid for ten minutes.")
        case .signInPending:
            self.init(
                .signInPending, "The sign-in was not approved yet. Try again later.",
                retryAfterSeconds: Int64(PairingRule.pollSeconds))
        case .signInDenied: self.init(.signInDenied, "The sign-in was denied.")
        case .tooManyWaiting(let things):
            self.init(
                .tooManyRequests, "There are too many \(things). Try again in a few minutes.",
                retryAfterSeconds: 60)
        case .tooMany(let things):
            self.init(.tooMany, "There are too many \(things). Remove some.")
        case .tooManyDevices(let which, let count, let max):
            self.init(
                .tooMany,
                "There are too many devices \(which): \(count), and at most \(max) are allowed. Sign "
                    + "one out on another device: `ubiquity device list` shows them, and `ubiquity "
                    + "device revoke NAME` signs one out.")
        case .sealing(let refusal): self.init(refusal)
        case .full:
            self.init(
                .storageFull,
                "The server's disk is full, and nothing was stored. Try again later.",
                retryAfterSeconds: 30)
        case .unreadable:
            self = .unavailable(
                "What the server has stored there cannot be read. Tell the server operator.",
                seconds: 60)
            showsDamage = true
        case .failed:
            self = .unavailable("The server could not use its database. Try again later.")
        }
    }

    private init(_ refusal: PushRefusal) {
        switch refusal {
        case .clockAhead(let error):
            self.init(
                .clockAhead,
                "transactions[\(error.transaction)].writes[\(error.write)] has a timestamp too far "
                    + "in the future. Correct it by the server's time.")
            serverMilliseconds = error.serverMilliseconds
        case .answerTooLarge:
            self.init(
                .bodyTooLarge,
                "The push writes the same keys so often that its answer would be too large. Send "
                    + "less at once.", at: .bodyTooLarge)
        case .tooManyStores:
            self.init(.tooMany, "The account has as many stores as it may have.")
        case .sealing(let refusal): self.init(refusal)
        case .records(let detail): self = .malformed("\(detail).")
        case .unreadable: self.init(StorageError.unreadable)
        case .full: self.init(StorageError.full)
        case .failed(let error): self.init(error)
        case .notAllowed(let refusal): self.init(refusal)
        // Its devices are gone too.
        case .noSuchAccount: self.init(AccessRefusal.credentialInvalid)
        }
    }

    private init(_ refusal: SealingRefusal) {
        switch refusal {
        case .otherGeneration(let generation, let asked):
            self.init(.sealed, Self.sealed(generation, asked: asked))
            self.generation = generation
        case .notSealed: self.init(.sealed, "The account is not sealed.")
        case .noProof:
            self.init(
                .proof,
                "Only a device with the account's present key may do this. `ubiquity unlock` gets it, "
                    + "from another device or with the recovery key.")
        case .spentGeneration:
            self.init(
                .malformed,
                "The account has already had a key of this number. Check this device's clock; if it "
                    + "is right, try again in a day.")
        case .generationAhead(let now):
            self.init(
                .clockAhead, "The key's number is too far in the future. Set this device's clock.")
            serverMilliseconds = now
        case .storeUnsealed:
            self.init(
                .storeUnsealed,
                "The store is not sealed with the account's key yet. A device that has the key does "
                    + "that; try again later.", retryAfterSeconds: 5)
        case .storeChanged:
            self.init(
                .storeChanged, "The store has changed since it was read. Read it again.")
        }
    }

    /// The sentence for a request that was made for another generation than the account's.
    private static func sealed(_ generation: UInt32, asked: UInt32) -> String {
        if asked == 0 {
            return
                "This account is sealed, and this device has no key for it: `ubiquity unlock` gets it. "
                + "A program that knows no sealed accounts has to be updated first."
        }
        if asked < generation {
            return "The account is sealed with a newer key than this device has: `ubiquity unlock` "
                + "gets it."
        }
        return generation == 0
            ? "This device has a key, but the account is not sealed on this server. `ubiquity encryption "
                + "status` says more."
            : "This device has a newer key than the account is sealed with on this server. `ubiquity "
                + "encryption status` says more."
    }

    private init(_ refusal: AccessRefusal) {
        switch refusal {
        case .credentialMissing:
            self.init(
                .credentialMissing,
                "The request has no credential. Send the device's credential in the Authorization "
                    + "header.")
        case .credentialInvalid:
            self.init(
                .credentialInvalid,
                "The credential is unknown or was revoked. Sign in again.")
        case .credentialExpired:
            self.init(.credentialExpired, "The credential has expired. Sign in again.")
        case .onlyForOperator:
            self.init(.notYours, "Only the operator's credential may do this.")
        case .notForOperator:
            self.init(
                .notYours, "The operator's credential cannot access stores. Sign in as a device.")
        case .confined:
            self.init(
                .notYours,
                "The credential is confined to some stores, and may not do this. Sign in with "
                    + "another code.")
        // Only devices are ever hidden.
        case .hidden: self.init(StorageError.noSuchDevice)
        case .appNotRegistered:
            self.init(
                .appNotRegistered,
                "The server accepts only registered apps, and this store's app is not registered. "
                    + "Ask the server operator to register its identifier.")
        }
    }

    /// Details for the holder of a valid signature: an app's developer.
    private init(_ refusal: IdentityRefusal) {
        switch refusal {
        case .otherIssuer:
            self.init(
                .tokenInvalid, "The token was issued by a provider that this server does not trust."
            )
        case .otherAudience:
            self.init(.tokenInvalid, "The token was issued for another audience.")
        case .endless:
            self.init(.tokenInvalid, "The token never expires, so it is not accepted.")
        case .expired: self.init(.tokenExpired, "The token has expired. Get a new one.")
        case .notYetValid: self.init(.tokenInvalid, "The token is not valid yet.")
        case .noSubject:
            self.init(
                .tokenInvalid,
                "The claim that names the account must be a text of 1 to "
                    + "\(IdentityRule.subjectBytesMax) bytes without control characters.")
        }
    }

    private init(_ error: TokenError) {
        switch error {
        case .malformed:
            self.init(
                .tokenInvalid,
                "This is not a signed JSON Web Token. Send the identity provider's token as it is.")
        case .forged:
            self.init(
                .tokenInvalid,
                "The token is not signed by a key of the identity provider that this server trusts."
            )
        case .noProvider:
            self.init(
                .tokenNotTaken,
                "This server accepts no identity provider's tokens. Sign in with a code.")
        case .keysUnavailable:
            self = .unavailable(
                "The identity provider's keys could not be fetched. Try again later.")
        }
    }

    private init(_ error: RateExceeded) {
        let seconds = max(1, (error.waitMilliseconds + 999) / 1_000)
        self.init(
            .tooManyRequests,
            "Too many requests. Try again in \(seconds) \(seconds == 1 ? "second" : "seconds").",
            retryAfterSeconds: seconds, at: error.limit)
    }

    private init(_ error: HistoryForgotten) {
        self.init(
            .historyForgotten,
            "What the store was then is not known any more. Ask for a later moment.")
        knownSinceMilliseconds = error.knownSince
    }

    private init(_ error: HubError) {
        switch error {
        case .closed:
            self = .unavailable("The server is shutting down. Try again soon.")
            isLogged = false
        case .tooMany:
            self.init(
                .tooManyStreams,
                "The account has too many open streams. Close some, or try again later.",
                retryAfterSeconds: 30, at: .listenersPerAccount)
        }
    }
}

// MARK: - The problems of the routes

extension Problem {
    static let notFound = Problem(.notFound, "There is nothing at this address.")
    static let notAcceptable = Problem(
        .notAcceptable,
        "The answer is available only as application/json or application/x-protobuf.")
    static let onlyAsEvents = Problem(
        .notAcceptable, "The answer is available only as text/event-stream.")
    static let unsupportedMediaType = Problem(
        .unsupportedMediaType, "The body must be application/json or application/x-protobuf.")
    static let notReady: Problem = {
        var problem = unavailable("The server is not ready. Try again soon.")
        problem.isLogged = false
        return problem
    }()
    static let answersInMemory = unavailable(
        "The server has too many answers under way. Try again soon.", at: .answersInMemory)
    static let bodiesInMemory = unavailable(
        "The server has too many requests under way. Try again soon.", at: .bodiesInMemory)
    static let historyOff = Problem(
        .historyOff,
        "This server keeps no history. The server operator can change that with --history-days.")
    static let answerTooLarge = Problem(
        .storageFull, "The store is too large to be sent. Remove something from it.")

    static func methodNotAllowed(_ allow: String) -> Problem {
        var problem = Problem(.methodNotAllowed, "This address only supports \(allow).")
        problem.allow = allow
        return problem
    }

    static func bodyTooLarge(max: Int) -> Problem {
        Problem(
            .bodyTooLarge, "The body is too large. It may have at most \(max) bytes.",
            at: .bodyTooLarge)
    }
}
