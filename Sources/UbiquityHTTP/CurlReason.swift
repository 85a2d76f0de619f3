// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
internal import CCurl
internal import Foundation

/// Why a request has no complete answer, from what curl tells.
struct CurlReason {
    var easy: OpaquePointer
    /// The request's, for OpenSSL's verdict.
    var number: UInt
    var request: HTTPRequest
    var usesProxy: Bool
    /// Whether the answer had begun.
    var hasBegun: Bool
    var code: Int
    /// Curl's sentence.
    var words: String

    var failure: HTTPFailure {
        switch code {
        case CURLE_OK, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE: hasBegun ? .cutShort : .closed
        case CURLE_ABORTED_BY_CALLBACK: .cancelled
        case CURLE_OPERATION_TIMEDOUT: .connectTimedOut
        case CURLE_COULDNT_RESOLVE_HOST:
            request.socket == nil ? .unknownHost : .unreachable("file name too long")
        case CURLE_COULDNT_RESOLVE_PROXY: .other("the proxy's name is not known")
        case CURLE_URL_MALFORMAT: .other("the URL cannot be read")
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: .other("the answer is not HTTP")
        case CURLE_COULDNT_CONNECT where usesProxy:
            proxyRefusal
                ?? .other("the proxy does not answer" + (systemWords.map { ": \($0)" } ?? ""))
        case CURLE_COULDNT_CONNECT: .unreachable(systemWords ?? words.lowercased())
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR: proxyRefusal ?? broken
        case CURLE_HTTP2, CURLE_HTTP2_STREAM: broken
        case CURLE_SSL_CONNECT_ERROR: isNoTLS ? .noTLS : broken
        case CURLE_PEER_FAILED_VERIFICATION: .certificate(certificateProblem)
        case CURLE_SSL_CACERT_BADFILE where request.certificates != nil:
            .certificate(.nothingToTrust)
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: .certificate(.otherKey)
        // Curl's words have the proxy's address, with its password.
        case _ where usesProxy && words.contains("proxy"):
            proxyRefusal ?? .other("the proxy of the environment cannot be used")
        default: proxyRefusal ?? .other(words)
        }
    }

    /// A connection that ended: without an error of the system's, the other side closed it.
    private var broken: HTTPFailure {
        // The number alone may be of an address that was tried before.
        if let systemWords, words.lowercased().contains(systemWords) { return .broken(systemWords) }
        if words.contains("unexpected eof") || words.contains("SSL_ERROR_SYSCALL") {
            return hasBegun ? .cutShort : .closed
        }
        return .broken(words)
    }

    private var systemWords: String? {
        let code = ccurl_get_long(easy, Int(CURLINFO_OS_ERRNO))
        return code == 0
            ? nil : String(cString: strerror(Int32(truncatingIfNeeded: code))).lowercased()
    }

    private var proxyRefusal: HTTPFailure? {
        let status = ccurl_get_long(easy, Int(CURLINFO_HTTP_CONNECTCODE))
        return status == 0 || (200..<300).contains(status)
            ? nil : .other("the proxy refused the connection with \(status)")
    }

    /// The words of OpenSSL's versions for bytes that are not TLS.
    private var isNoTLS: Bool {
        ["wrong version number", "http request", "packet length too long", "unknown protocol"]
            .contains { words.contains($0) }
    }

    private var certificateProblem: HTTPFailure.CertificateProblem {
        var verdict = ccurl_verdict()
        guard ccurl_verdict(number, &verdict) else {
            return Self.problem(ccurl_get_long(easy, Int(CURLINFO_SSL_VERIFYRESULT)))
        }
        // A certificate of today is the least that an untrusted one must be, too.
        let now = Int64(time(nil))
        if verdict.result != X509_V_OK, verdict.ends != .min, verdict.ends < now {
            return .expired(verdict.ends)
        }
        if verdict.result != X509_V_OK, verdict.begins > now { return .notYetValid(verdict.begins) }
        return Self.problem(verdict.result)
    }

    /// Where OpenSSL has nothing against the certificate, its name is another one.
    private static func problem(_ result: Int) -> HTTPFailure.CertificateProblem {
        switch result {
        case X509_V_OK, X509_V_ERR_UNSPECIFIED: .otherName
        case X509_V_ERR_CERT_HAS_EXPIRED: .expired(nil)
        case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid(nil)
        default: .untrusted
        }
    }
}
#endif
