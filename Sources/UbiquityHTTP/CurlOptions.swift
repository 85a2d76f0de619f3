// SPDX-License-Identifier: Apache-2.0

#if os(Linux)
internal import CCurl

/// Tells curl what to do, and what not.
struct CurlOptions {
    /// Bytes in the system's send buffer do not count as progress, so it must be small.
    private static let sendBufferBytes: Int32 = 64 << 10
    private static let uploadBytes = 16 << 10

    private let easy: OpaquePointer

    init(_ easy: OpaquePointer) { self.easy = easy }

    /// - Throws: ``HTTPFailure`` for a request that cannot be made, or not safely.
    func set(
        _ request: HTTPRequest, _ environment: CurlEnvironment, _ proxy: String?
    ) throws(HTTPFailure) {
        try Self.check(request)
        try setConnection(request, proxy)
        try setTrust(request, environment)
        try setMethod(request)
    }

    /// A string in C ends at its first zero, and a line of a head at its end.
    private static func check(_ request: HTTPRequest) throws(HTTPFailure) {
        func isToken(_ text: String) -> Bool {
            !text.isEmpty && text.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != UInt8(ascii: ":") }
        }
        guard !request.url.utf8.contains(where: { $0 <= 32 || $0 == 127 }) else {
            throw .other("the URL cannot be read")
        }
        guard isToken(request.method), request.socket?.utf8.contains(0) != true,
            request.fields.allSatisfy({ field in
                isToken(field.name) && !field.name.utf8.contains(UInt8(ascii: ";"))
                    && !field.value.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 }
            })
        else { throw .other("the request has a character that HTTP does not allow") }
    }

    private func setConnection(_ request: HTTPRequest, _ proxy: String?) throws(HTTPFailure) {
        try set(CURLOPT_URL, request.url)
        try set(CURLOPT_PATH_AS_IS, 1)
        try set(CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS)
        try set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        try set(CURLOPT_HTTP09_ALLOWED, 0)
        try set(CURLOPT_NOSIGNAL, 1)
        // A server that has moved is found by its new address at once. Connections last longer than a
        // name's answer, so few names are looked up.
        try set(CURLOPT_DNS_CACHE_TIMEOUT, 0)
        try set(CURLOPT_CONNECTTIMEOUT_MS, HTTPRequest.connectSecondsMax * 1_000)
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // Not from the environment, which curl would read now.
        try set(CURLOPT_PROXY, proxy ?? "")
        try set(CURLOPT_NOPROXY, "")
        if let socket = request.socket {
            try set(CURLOPT_UNIX_SOCKET_PATH, socket)
            // The path of a closed socket may later be that of another one.
            try set(CURLOPT_FORBID_REUSE, 1)
        }
        try set(CURLOPT_FRESH_CONNECT, request.isIdempotent ? 0 : 1)
        ccurl_set_sockets(easy, Self.sendBufferBytes)
        // Where curl has it. A request waits for no other's connection, so the first ones of a
        // process may open several.
        ccurl_set_long(easy, Int(CURLOPT_HTTP_VERSION), Int(CURL_HTTP_VERSION_2TLS))
        // Where curl is older, the end of a request may wait for its name to be looked up.
        ccurl_set_long(easy, Int(CURLOPT_QUICK_EXIT), 1)
    }

    private func setTrust(
        _ request: HTTPRequest, _ environment: CurlEnvironment
    ) throws(HTTPFailure) {
        try set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        // Each connection verifies the certificate anew.
        try set(CURLOPT_SSL_SESSIONID_CACHE, 0)
        if let file = environment.certificateFile {
            try set(CURLOPT_CAINFO, file)
            ccurl_set_pointer(easy, Int(CURLOPT_PROXY_CAINFO), file)
        }
        if let folder = environment.certificateFolder {
            try set(CURLOPT_CAPATH, folder)
            ccurl_set_pointer(easy, Int(CURLOPT_PROXY_CAPATH), folder)
        }
        if let certificates = request.certificates {
            let bytes = Array(certificates.utf8)
            guard !bytes.isEmpty else { throw .certificate(.nothingToTrust) }
            guard ccurl_set_trusted(easy, bytes, bytes.count) == 0 else {
                throw .other("libcurl is too old for a server's own certificate: it must be 7.77")
            }
        }
        if let pin = request.pin {
            // Without TLS there is no key.
            guard request.url.lowercased().hasPrefix("https:") else { throw .noTLS }
            // Anything else would be the name of a file.
            guard pin.hasPrefix("sha256//") else { throw .certificate(.otherKey) }
            try set(CURLOPT_PINNEDPUBLICKEY, pin)
            if request.certificates == nil {
                try set(CURLOPT_SSL_VERIFYPEER, 0)
                try set(CURLOPT_SSL_VERIFYHOST, 0)
            }
        }
    }

    private func setMethod(_ request: HTTPRequest) throws(HTTPFailure) {
        guard request.method != "HEAD" else { return try set(CURLOPT_NOBODY, 1) }
        let needsBody = ["POST", "PUT", "PATCH"].contains(request.method)
        if let body = request.body ?? (needsBody ? [] : nil) {
            guard ccurl_set_body(easy, body, body.count) == 0 else {
                throw .other("there is no memory left")
            }
            // In pieces, so that the progress of sending is visible.
            ccurl_set_long(easy, Int(CURLOPT_UPLOAD_BUFFERSIZE), Self.uploadBytes)
        } else {
            try set(CURLOPT_HTTPGET, 1)
        }
        try set(CURLOPT_CUSTOMREQUEST, request.method)
    }

    private func set(_ option: Int, _ value: Int) throws(HTTPFailure) {
        try check(ccurl_set_long(easy, option, value), option)
    }

    private func set(_ option: Int, _ value: String) throws(HTTPFailure) {
        try check(ccurl_set_pointer(easy, option, value), option)
    }

    /// Without an option, curl could do what it must not.
    private func check(_ code: Int32, _ option: Int) throws(HTTPFailure) {
        guard code == 0 else { throw .other("libcurl lacks option \(option)") }
    }
}
#endif
