// SPDX-License-Identifier: Apache-2.0

internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import UbiquityCore
internal import UbiquityWire

/// The reason a request was refused, as in the answer. The only place where errors become statuses.
struct Problem: Error, Sendable {
    var status: HTTPResponse.Status
    /// A code for programs.
    var code: String
    /// A sentence with the problem and the solution.
    var detail: String
    var retryAfterSeconds: Int64?
    /// Nil if it is irrelevant for this problem.
    var serverMilliseconds: Int64?
    /// The methods of the path, for 405.
    var allow: String?
    /// The limit that was exceeded; nil for other problems.
    var limit: EdgeLimit?
    /// Whether something in the database is unreadable.
    var showsDamage = false
    /// False if the problem is logged elsewhere, less often than it is answered.
    var isLogged = true

    init(_ status: HTTPResponse.Status, _ code: String, _ detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }

    /// Translates any error for the client.
    init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let error as WireError: self = .malformed("\(error).")
        case let error as StorageError: self.init(error)
        case let refusal as AccessRefusal: self.init(refusal)
        case let refusal as IdentityRefusal: self.init(refusal)
        case let error as ClockAhead: self = .clockAhead(error)
        case is Busy: self = .unavailable("The server has too much to do. Try again soon.")
        case HubError.tooMany: self = .tooManyListeners
        case HubError.closed: self = .unavailable("The server is shutting down. Try again soon.")
        case is NIOTooManyBytesError: self = .bodyTooLarge()
        case let error as HTTPError where error.status == .notFound: self = .notFound
        case is any HTTPResponseError: self = .malformed("The request could not be understood.")
        default: self = .unavailable("Something went wrong on the server. Try again later.")
        }
    }

    private init(_ error: StorageError) {
        switch error {
        case .accountExists:
            self.init(
                .conflict, "account-exists",
                "An account of this name exists. Ask for a further code to sign in a device.")
        case .noSuchAccount:
            self.init(.notFound, "not-found", "There is no account of this name.")
        case .noSuchDevice:
            self.init(.notFound, "not-found", "The account has no such device.")
        case .noSuchApp:
            self.init(.notFound, "not-found", "This app is not registered.")
        case .codeInvalid:
            self.init(
                .unauthorized, "code-invalid",
                "The code is wrong, was used already, or has expired. Ask for a new one.")
        case .tooMany(let things):
            self.init(.contentTooLarge, "too-many", "There are too many \(things). Remove some.")
        case .full:
            self.init(
                HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage"),
                "storage-full",
                "The server's disk is full, and nothing was stored. Try again later.")
            retryAfterSeconds = 30
        case .unreadable: self = .unreadable
        case .failed:
            self = .unavailable("The server could not use its disk. Try again later.")
        }
    }
}

extension Problem {
    private init(_ refusal: AccessRefusal) {
        switch refusal {
        case .credentialMissing:
            self.init(
                .unauthorized, "credential-missing",
                "The request has no credential. Send the device's in the Authorization header.")
        case .credentialInvalid:
            self.init(
                .unauthorized, "credential-invalid",
                "The credential is unknown or was revoked. Sign in again.")
        case .credentialExpired:
            self.init(
                .unauthorized, "credential-expired",
                "The credential has expired. Sign in again.")
        case .onlyForOperator:
            self.init(
                .forbidden, "not-yours", "Only the operator's credential may do this.")
        case .notForOperator:
            self.init(
                .forbidden, "not-yours",
                "The operator's credential reaches no stores. Sign in as a device.")
        case .confined:
            self.init(
                .forbidden, "not-yours",
                "The credential is confined to some stores, and may not do this. Sign in by another "
                    + "code.")
        // Only devices are ever hidden.
        case .hidden: self.init(StorageError.noSuchDevice)
        case .appNotRegistered:
            self.init(
                .forbidden, "app-not-registered",
                "The server takes registered apps only, and this store's is none. Ask who runs "
                    + "the server to register its identifier.")
        }
    }

    static let notFound = Problem(.notFound, "not-found", "There is nothing at this address.")
    static let unsupportedMediaType = Problem(
        .unsupportedMediaType, "unsupported-media-type",
        "The body must be application/json or application/x-protobuf.")
    static let notAcceptable = Problem(
        .notAcceptable, "not-acceptable",
        "The answer can be application/json or application/x-protobuf only.")
    static let headerTooLarge = Problem(
        HTTPResponse.Status(code: 431, reasonPhrase: "Request Header Fields Too Large"),
        "header-too-large", "The request's address and headers are too large, or too many.")
    static let notHTTP = malformed("The request is no HTTP/1.1.")
    static let hostInvalid = malformed(
        "A request names the server that it is for, once, in the header Host.")
    static let hostForeign = Problem(
        HTTPResponse.Status(code: 421, reasonPhrase: "Misdirected Request"), "host-foreign",
        "This server is not known by the name in the header Host. Whoever runs it can add the name."
    )
    static let requestTooSlow = Problem(
        .requestTimeout, "request-too-slow",
        "The request came too slowly. Send it again over a better connection.")
    static let tooManyConnections = unavailable(
        "The server has as many connections as it may have. Try again soon.", seconds: 5)
    static let tooManyConnectionsFromThere = Problem(
        tooMany: "There are too many connections from this address. Close some.", 5)
    static let notReady: Problem = {
        var problem = unavailable("The server is not ready. Try again soon.")
        problem.isLogged = false
        return problem
    }()
    static let answersInMemory = unavailable(
        "The server has too many answers under way. Try again soon."
    ).at(.answersInMemory)
    static let bodiesInMemory = unavailable(
        "The server has too many requests under way. Try again soon."
    ).at(.bodiesInMemory)
    static let unreadable: Problem = {
        var problem = unavailable(
            "What the server has stored there cannot be read. Its operator must look.", seconds: 60)
        problem.showsDamage = true
        return problem
    }()
    static let cursorOtherHistory = Problem(
        .gone, "cursor-other-history",
        "The cursor belongs to another history of this store. Pull the whole store.")
    static let cursorCompacted = Problem(
        .gone, "cursor-forgotten",
        "Deletions since the cursor are forgotten. Pull the whole store.")
    static let cursorInvalid = Problem(
        .badRequest, "malformed", "The cursor is none that this server gave.")
    static let tooManyStores = Problem(
        .contentTooLarge, "too-many", "The account has as many stores as it may have.")
    static let tooManyListeners = Problem(
        tooMany: "The account has too many open streams. Close some, or try again later.", 30,
        code: "too-many-streams"
    ).at(.listenersPerAccount)

    static func malformed(_ detail: String) -> Problem {
        Problem(.badRequest, "malformed", detail)
    }

    static func methodNotAllowed(_ allow: String) -> Problem {
        var problem = Problem(
            .methodNotAllowed, "method-not-allowed", "This address knows \(allow) only.")
        problem.allow = allow
        return problem
    }

    static func clockAhead(_ error: ClockAhead) -> Problem {
        var problem = Problem(
            .conflict, "clock-ahead",
            "transactions[\(error.transaction)].writes[\(error.write)] is stamped too far into the "
                + "future. Correct it by the server's time.")
        problem.serverMilliseconds = error.serverMilliseconds
        return problem
    }

    static func bodyTooLarge(max: Int? = nil) -> Problem {
        let limit = max.map { " It may have at most \($0) bytes." } ?? ""
        return Problem(.contentTooLarge, "body-too-large", "The body is too large.\(limit)")
            .at(.bodyTooLarge)
    }

    /// - Parameter bytes: The cost of the push's writes.
    static func pushTooLarge(_ bytes: Int, max: Int) -> Problem {
        Problem(
            .contentTooLarge, "body-too-large",
            "The push's writes count \(bytes) bytes, and may count at most \(max). Send less at once."
        ).at(.bodyTooLarge)
    }

    static func pushTooLarge(elementsMax: Int) -> Problem {
        Problem(
            .contentTooLarge, "body-too-large",
            "The push may have at most \(elementsMax) elements. Send less at once."
        ).at(.bodyTooLarge)
    }

    static let answerRepeats = Problem(
        .contentTooLarge, "body-too-large",
        "The push writes the same keys so often that its answer would be too large. Send less at once."
    ).at(.bodyTooLarge)
    static let answerTooLarge = Problem(
        HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage"), "storage-full",
        "The store is too large to be sent. Remove something from it.")

    static func tooManyRequests(afterMilliseconds milliseconds: Int64) -> Problem {
        Problem(
            tooMany: "Too many requests. Wait as long as Retry-After says.",
            max(1, (milliseconds + 999) / 1_000))
    }

    static func unavailable(_ detail: String, seconds: Int64 = 1) -> Problem {
        var problem = Problem(.serviceUnavailable, "unavailable", detail)
        problem.retryAfterSeconds = seconds
        return problem
    }

    /// The same problem, attributed to a limit.
    func at(_ limit: EdgeLimit) -> Problem {
        var problem = self
        problem.limit = limit
        return problem
    }

    private init(
        tooMany detail: String, _ retryAfterSeconds: Int64, code: String = "too-many-requests"
    ) {
        self.init(.tooManyRequests, code, detail)
        self.retryAfterSeconds = retryAfterSeconds
    }
}
