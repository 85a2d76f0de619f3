// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import UbiquityCore

/// The page for people, at `/`. It is a device like any other: it has the JavaScript client, and no
/// addresses of its own besides its files.
struct PageRoutes: Sendable {
    let all = PageFile.all.map { file in
        let answers = PageAnswers(file)
        return Route(.get, file.path, .readPage) { request, _ in answers.answer(request) }
    }
}

/// A file of the page.
struct PageFile: Sendable {
    let path: String
    let type: String
    let text: String
}

/// The answers to requests for one file.
private struct PageAnswers: Sendable {
    private let body: ByteBuffer
    private let tag: String
    private let headers: HTTPFields

    init(_ file: PageFile) {
        body = ByteBuffer(string: file.text)
        let digest = SHA256.hash(data: Array(file.text.utf8)).prefix(12)
        let digits = digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
        tag = "\"\(digits.joined())\""
        headers = [
            .contentType: file.type,
            .contentLength: "\(body.readableBytes)",
            .eTag: tag,
            // Kept, and asked for again: an updated server has an updated page.
            .cacheControl: "no-cache",
            .contentSecurityPolicy: Self.policy,
            .crossOriginOpenerPolicy: "same-origin",
            .crossOriginResourcePolicy: "same-origin",
            .permissionsPolicy: "camera=(), geolocation=(), microphone=()",
        ]
    }

    /// Nothing from elsewhere, nothing inline, and no text that becomes markup or a script.
    private static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
        "img-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'",
        "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
    ].joined(separator: "; ")

    func answer(_ request: Request) -> Response {
        let known = request.headers[values: .ifNoneMatch]
            .flatMap { $0.split(separator: ",") }
            .map { $0.drop { $0 == " " }.trimmingPrefix("W/") }
        guard !known.contains(where: { $0 == tag || $0 == "*" }) else {
            return Response(status: .notModified, headers: headers)
        }
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: body))
    }
}

extension HTTPField.Name {
    fileprivate static let crossOriginOpenerPolicy = Self("Cross-Origin-Opener-Policy")!
    fileprivate static let crossOriginResourcePolicy = Self("Cross-Origin-Resource-Policy")!
    fileprivate static let permissionsPolicy = Self("Permissions-Policy")!
}
