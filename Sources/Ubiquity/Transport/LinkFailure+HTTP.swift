// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore
package import UbiquityHTTP
internal import UbiquityWire

extension LinkFailure {
    /// Translates an unsuccessful answer. Its problem details become the sentence.
    package init(_ head: HTTPAnswerHead, body: [UInt8], _ address: ServerAddress) {
        let problem = Self.problem(in: body, head) ?? WireProblem()
        guard problem.isOfServer || Self.isFromAnybody(head.status) else {
            self = .foreign(head, address)
            return
        }
        var detail =
            problem.detail.isEmpty
            ? "the server at \(address) answered \(head.line)"
            : Self.withoutPoint(problem.detail)
        if problem.knownSinceMilliseconds > 0 {
            let since = Int64(wireMilliseconds: problem.knownSinceMilliseconds)
            detail =
                "the server's history of the store only goes back to "
                + Date(milliseconds: since).formatted(.iso8601)
        }
        self.init(Self.kind(of: head, problem), detail)
        code = ProblemCode(rawValue: problem.code)?.rawValue
    }

    /// The end of a store in a stream of several.
    init(_ problem: WireProblem, _ address: ServerAddress) {
        var head = HTTPAnswerHead(status: Int(problem.status))
        head.fields.append(("content-type", WireFormat.protobuf.rawValue))
        if problem.retryAfterSeconds > 0 {
            head.fields.append(("retry-after", "\(problem.retryAfterSeconds)"))
        }
        self.init(head, body: WireFormat.protobuf.encode(problem), address)
    }

    private static func kind(of head: HTTPAnswerHead, _ problem: WireProblem) -> Kind {
        switch ProblemCode(rawValue: problem.code) {
        case .clockAhead where problem.serverMilliseconds > 0:
            .clockAhead(
                serverMilliseconds: Int64(wireMilliseconds: problem.serverMilliseconds))
        case .sealed: .sealed(generation: problem.generation)
        case .tooMany, .historyForgotten, .historyOff: .refused
        case .cursorOtherHistory: .cursorGone(isOtherHistory: true)
        case .tooManyStreams:
            .tooManyStreams(retryAfterMilliseconds: retryAfter(head) ?? 30_000)
        // The status says enough.
        case .malformed, .credentialMissing, .credentialInvalid, .credentialExpired, .codeInvalid,
            .signInPending, .signInDenied, .tokenInvalid, .tokenExpired, .tokenNotTaken, .notYours,
            .appNotRegistered, .proof, .notFound,
            .methodNotAllowed, .notAcceptable, .requestTooSlow, .accountExists, .clockAhead,
            .cursorCompacted, .bodyTooLarge, .unsupportedMediaType, .hostForeign,
            .tooManyRequests, .headerTooLarge, .storeUnsealed, .storeChanged, .unavailable,
            .storageFull, nil:
            Kind(status: head.status, retryAfterMilliseconds: retryAfter(head))
        }
    }

    /// In milliseconds. The form with a date is not supported, and the wait is limited to an hour.
    private static func retryAfter(_ head: HTTPAnswerHead) -> Int64? {
        guard let seconds = head["retry-after"].flatMap({ Double($0) }),
            seconds >= 0
        else { return nil }
        return Int64(min(seconds, 3_600) * 1_000)
    }

    private static func problem(in body: [UInt8], _ head: HTTPAnswerHead) -> WireProblem? {
        let type = head["content-type"] ?? ""
        let format: WireFormat? =
            type.lowercased().hasPrefix("application/problem+json")
            ? .json : WireFormat(mediaType: type)
        return try? format?.decode(WireProblem.self, from: body, within: .small)
    }

    private static func withoutPoint(_ sentence: String) -> String {
        sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
    }
}

extension LinkFailure {
    /// An answer that only another program gives.
    static func noUbiquityServer(_ address: ServerAddress) -> LinkFailure {
        LinkFailure(.unreachable, "the server at \(address) is not a Ubiquity server")
    }

    /// An answer of something in front of the server: a proxy, or the page of a network that one
    /// must sign in to. It is tried again like any failure.
    static func foreign(_ head: HTTPAnswerHead, _ address: ServerAddress) -> LinkFailure {
        LinkFailure(
            .unreachable,
            "something other than the Ubiquity server answered at \(address) (\(head.line))")
    }

    /// The reason a request got no answer, or an unintelligible one.
    init(_ error: any Error, _ address: ServerAddress) {
        switch error {
        case let failure as LinkFailure: self = failure
        case is WireError:
            self.init(.unreachable, "the answer from \(address) cannot be read: \(error)")
        case let failure as HTTPFailure: self.init(.unreachable, failure.sentence(address))
        default: self.init(.unreachable, "the request to \(address) failed (\(error))")
        }
    }
}

extension HTTPAnswerHead {
    /// For people. Without a reason, which HTTP/2 does not have, the status alone.
    fileprivate var line: String { reason.isEmpty ? "\(status)" : "\(status) \(reason)" }
}

extension HTTPFailure {
    /// Whether the other side closed the connection.
    var isOfClosedConnection: Bool {
        switch self {
        case .closed, .broken: true
        case .connectTimedOut, .unknownHost, .unreachable, .cutShort, .noTLS, .certificate, .silent,
            .cancelled, .other:
            false
        }
    }

    fileprivate func sentence(_ address: ServerAddress) -> String {
        switch self {
        case .connectTimedOut:
            "no server answers at \(address) (no response within "
                + "\(HTTPRequest.connectSecondsMax) seconds)"
        case .unknownHost: "no server answers at \(address) (its name is not known)"
        case .unreachable(let words): "no server answers at \(address) (\(words))"
        case .closed: "the server at \(address) closed the connection"
        case .cutShort: "the server at \(address) closed the connection in the middle of an answer"
        case .broken(let words): "the connection to \(address) broke (\(words))"
        case .noTLS:
            "the server at \(address) does not use TLS; check the address, and whether it should "
                + "begin with https"
        case .certificate(let problem): problem.sentence(address)
        case .silent: "the server at \(address) sent nothing"
        case .cancelled: "the request to \(address) was cancelled"
        case .other(let words): "the request to \(address) failed (\(words))"
        }
    }
}

extension HTTPFailure.CertificateProblem {
    /// The problem and its solution.
    fileprivate func sentence(_ address: ServerAddress) -> String {
        let certificate = "the certificate of the server at \(address)"
        return switch self {
        case .otherName:
            "\(certificate) is for another name; use the name that it was issued for, or ask the "
                + "server operator for a certificate with this name"
        case .expired(let seconds):
            "\(certificate) expired\(Self.day(" on ", seconds) ?? ""); the server operator must renew it"
        case .notYetValid(let seconds):
            "\(certificate) is not valid\(Self.day(" before ", seconds) ?? " yet"); check this "
                + "device's clock"
        case .untrusted where address.certificates == nil:
            "\(certificate) is not trusted by this system; if it is the server operator's own, get "
                + "it from them and sign in with it (--certificate FILE), or with a whole link of "
                + "theirs, which has its key"
        case .untrusted:
            "\(certificate) is not the one that this device was told to trust; if the server "
                + "operator has changed it, sign in again with the new one"
        case .otherKey:
            "\(certificate) has another key than the one that this device was told to accept; if "
                + "the server operator has changed it, sign in again with a new link"
        case .nothingToTrust: ServerAddress.noCertificate
        }
    }

    private static func day(_ word: String, _ seconds: Int64?) -> String? {
        seconds.map {
            word + Date(timeIntervalSince1970: Double($0)).formatted(.iso8601.year().month().day())
        }
    }
}

extension WireProblem {
    private static let typePrefix = "urn:ubiquity:problem:"

    /// Whether only a server of the protocol says so, perhaps one of a later version.
    fileprivate var isOfServer: Bool {
        ProblemCode(rawValue: code) != nil || type.hasPrefix(Self.typePrefix)
    }
}
