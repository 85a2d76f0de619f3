// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import Foundation
package import NIOCore
package import NIOHTTP1
internal import NIOPosix
package import UbiquityCore
internal import UbiquityWire

extension LinkFailure {
    /// Translates an unsuccessful answer. Its problem details become the sentence.
    package init(
        status: HTTPResponseStatus, headers: HTTPHeaders, body: ByteBuffer,
        _ address: ServerAddress
    ) {
        let problem = Self.problem(in: body, headers) ?? WireProblem()
        guard problem.isOfServer || Self.isFromAnybody(status.code) else {
            self = .foreign(status, address)
            return
        }
        var detail =
            problem.detail.isEmpty
            ? "the server at \(address) answered \(status.code) \(status.reasonPhrase)"
            : Self.withoutPoint(problem.detail)
        if problem.knownSinceMilliseconds > 0 {
            let since = Int64(wireMilliseconds: problem.knownSinceMilliseconds)
            detail =
                "the server's history of the store only goes back to "
                + Date(milliseconds: since).formatted(.iso8601)
        }
        self.init(Self.kind(of: status.code, headers, problem), detail)
        code = ProblemCode(rawValue: problem.code)?.rawValue
    }

    /// Whether an answer means the same from the server and from something in front of it. Of the
    /// others, those with a problem of the protocol are the server's: a page to sign in to a network,
    /// or a gateway's, says nothing about this device.
    private static func isFromAnybody(_ status: UInt) -> Bool {
        [408, 413, 429].contains(status) || status >= 500
    }

    private static func kind(
        of status: UInt, _ headers: HTTPHeaders, _ problem: WireProblem
    ) -> Kind {
        switch ProblemCode(rawValue: problem.code) {
        case .clockAhead where problem.serverMilliseconds > 0:
            .clockAhead(
                serverMilliseconds: Int64(wireMilliseconds: problem.serverMilliseconds))
        case .tooMany, .historyForgotten, .historyOff: .refused
        case .cursorOtherHistory: .cursorGone(isOtherHistory: true)
        case .tooManyStreams:
            .tooManyStreams(retryAfterMilliseconds: retryAfter(headers) ?? 30_000)
        // The status says enough.
        case .malformed, .credentialMissing, .credentialInvalid, .credentialExpired, .codeInvalid,
            .signInPending, .signInDenied, .tokenInvalid, .tokenExpired, .tokenNotTaken, .notYours,
            .appNotRegistered, .notFound,
            .methodNotAllowed, .notAcceptable, .requestTooSlow, .accountExists, .clockAhead,
            .cursorCompacted, .bodyTooLarge, .unsupportedMediaType, .hostForeign,
            .tooManyRequests, .headerTooLarge, .unavailable, .storageFull, nil:
            kind(of: status, headers)
        }
    }

    private static func kind(of status: UInt, _ headers: HTTPHeaders) -> Kind {
        switch status {
        case 401: .unauthorized
        case 400, 403, 404, 409, 415, 422: .refused
        case 408, 504: .timedOut
        case 410: .cursorGone(isOtherHistory: false)
        case 413: .tooLarge
        case 429: .busy(retryAfterMilliseconds: retryAfter(headers) ?? 1_000)
        case 503, 507: .busy(retryAfterMilliseconds: retryAfter(headers) ?? 5_000)
        default: .unreachable
        }
    }

    /// In milliseconds. The form with a date is not supported, and the wait is limited to an hour.
    private static func retryAfter(_ headers: HTTPHeaders) -> Int64? {
        guard let seconds = headers.first(name: "retry-after").flatMap({ Double($0) }),
            seconds >= 0
        else { return nil }
        return Int64(min(seconds, 3_600) * 1_000)
    }

    private static func problem(in body: ByteBuffer, _ headers: HTTPHeaders) -> WireProblem? {
        let type = headers.first(name: "content-type") ?? ""
        let format: WireFormat? =
            type.lowercased().hasPrefix("application/problem+json")
            ? .json : WireFormat(mediaType: type)
        return try? format?.decode(
            WireProblem.self, from: Data(body.readableBytesView), within: .small)
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
    static func foreign(_ status: HTTPResponseStatus, _ address: ServerAddress) -> LinkFailure {
        LinkFailure(
            .unreachable,
            "something other than the Ubiquity server answered at \(address) (\(status.code) "
                + "\(status.reasonPhrase))")
    }

    /// The reason a request got no answer, or an unintelligible one.
    init(_ error: any Error, _ address: ServerAddress) {
        switch error {
        case let failure as LinkFailure: self = failure
        case is WireError:
            self.init(.unreachable, "the answer from \(address) cannot be read: \(error)")
        case let error as HTTPClientError:
            self.init(
                error == .deadlineExceeded ? .timedOut : .unreachable, Self.detail(error, address))
        case is HTTPParserError:
            self.init(
                .unreachable,
                "the server at \(address) closed the connection in the middle of an answer")
        case let error as IOError where [ECONNRESET, ECONNABORTED, EPIPE].contains(error.errnoCode):
            self.init(
                .unreachable, "the connection to \(address) broke (\(Self.words(for: error)))")
        case let error where CertificateDiagnosis.isNoTLS(error):
            self.init(
                .unreachable,
                "the server at \(address) does not use TLS; check the address, and whether it "
                    + "should begin with https")
        default: self.init(.unreachable, Self.detail(error, address))
        }
    }

    /// Whether the error means that the other side closed the connection.
    static func isClosedConnection(_ error: any Error) -> Bool {
        switch error {
        case let error as HTTPClientError: error == .remoteConnectionClosed
        case let error as IOError: [ECONNRESET, EPIPE].contains(error.errnoCode)
        default: false
        }
    }

    private static func detail(_ error: HTTPClientError, _ address: ServerAddress) -> String {
        switch error {
        case .connectTimeout:
            "no server answers at \(address) (no response within "
                + "\(SharedHTTPClient.connectSecondsMax) seconds)"
        case .remoteConnectionClosed: "the server at \(address) closed the connection"
        case .cancelled: "the request to \(address) was cancelled"
        default: "the request to \(address) failed (\(error.shortDescription))"
        }
    }

    private static func detail(_ error: any Error, _ address: ServerAddress) -> String {
        let causes = causes(of: error)
        if let error = causes.lazy.compactMap({ $0 as? IOError }).first {
            return "no server answers at \(address) (\(words(for: error)))"
        }
        if causes.contains(where: { $0 is SocketAddressError.UnknownHost }) {
            return "no server answers at \(address) (its name is not known)"
        }
        return "the request to \(address) failed (\(error))"
    }

    private static func words(for error: IOError) -> String {
        SystemError(error.errnoCode).description.lowercased()
    }

    /// The errors of each address that was tried, which NIO's connection error contains.
    private static func causes(of error: any Error) -> [any Error] {
        guard let error = error as? NIOConnectionError else { return [error] }
        return error.connectionErrors.map(\.error)
            + [error.dnsAError, error.dnsAAAAError].compactMap(\.self)
    }
}

extension WireProblem {
    private static let typePrefix = "urn:ubiquity:problem:"

    /// Whether only a server of the protocol says so, perhaps one of a later version.
    fileprivate var isOfServer: Bool {
        ProblemCode(rawValue: code) != nil || type.hasPrefix(Self.typePrefix)
    }
}
