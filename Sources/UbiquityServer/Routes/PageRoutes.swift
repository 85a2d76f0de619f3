// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import UbiquityCore

/// The page for people, at `/`. It is a device like any other: it has the JavaScript client, and no
/// addresses of its own besides its files.
struct PageRoutes: Sendable {
    let all: [Route]

    /// - Parameter provider: Where people can sign in, too; nil for nowhere else.
    init(provider: PageProvider?) {
        all = PageFile.all.map { file in
            let answers = PageAnswers(file, provider: provider)
            return Route(.GET, file.path, .anybodys) { answers.answer($0.request.headers) }
        }
    }
}

/// A file of the page.
struct PageFile: Sendable {
    let path: String
    let type: String
    /// By gzip, with which all browsers ask for it, by Brotli, and as it is.
    let gzip: ByteBuffer
    let brotli: ByteBuffer?
    let plain: ByteBuffer?

    /// - Parameters: All forms in base64, as `scripts/embed-page` writes them.
    init(path: String, type: String, gzip: String, brotli: String? = nil, plain: String? = nil) {
        func bytes(_ base64: String) -> ByteBuffer {
            ByteBuffer(bytes: Data(base64Encoded: base64) ?? Data())
        }
        (self.path, self.type) = (path, type)
        self.gzip = bytes(gzip)
        (self.brotli, self.plain) = (brotli.map(bytes), plain.map(bytes))
    }

    /// Whether the address has a hash of the content.
    var isForGood: Bool { path.hasPrefix("/app/") }
}

/// The answers to requests for one file.
private struct PageAnswers: Sendable {
    /// The one that is sent if all are accepted first.
    private let encoded: [(encoding: String, form: Form)]
    private let gzip: Form
    private let plain: Form?

    /// A file as it is sent. Each form has a tag of its own.
    private struct Form: Sendable {
        let body: ByteBuffer
        let tag: String
        let headers: HTTPHeaders

        init(_ body: ByteBuffer, tag: String, headers: HTTPHeaders, encoding: String? = nil) {
            self.body = body
            self.tag = "\"\(tag)\(encoding.map { "-\($0)" } ?? "")\""
            var headers = headers
            headers.add(name: "Content-Length", value: "\(body.readableBytes)")
            headers.add(name: "ETag", value: self.tag)
            if let encoding { headers.add(name: "Content-Encoding", value: encoding) }
            self.headers = headers
        }
    }

    init(_ file: PageFile, provider: PageProvider?) {
        let digest = SHA256.hash(data: Array(file.gzip.readableBytesView)).prefix(12)
        let tag = digest.hexadecimal
        let headers: HTTPHeaders = [
            "Content-Type": file.type,
            // What may change is asked for again: an updated server has an updated page.
            "Cache-Control": file.isForGood ? "public, max-age=31536000, immutable" : "no-cache",
            "Vary": "Accept-Encoding",
            "Content-Security-Policy": Self.policy(provider),
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        ]
        gzip = Form(file.gzip, tag: tag, headers: headers, encoding: "gzip")
        let brotli = file.brotli.map { Form($0, tag: tag, headers: headers, encoding: "br") }
        encoded = (brotli.map { [("br", $0)] } ?? []) + [("gzip", gzip)]
        plain = file.plain.map { Form($0, tag: tag, headers: headers) }
    }

    /// Nothing from elsewhere, nothing inline, and no text that becomes markup or a script; a script
    /// may compile WebAssembly, which can do no more than the script. The policy "worker" of the page
    /// makes the address of its service worker, and no other. Requests go to the server, and
    /// to the identity provider if there is one.
    private static func policy(_ provider: PageProvider?) -> String {
        let reachable = ["connect-src 'self'", provider?.origin].compactMap(\.self)
        return [
            "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "style-src 'self'",
            reachable.joined(separator: " "), "img-src 'self'", "manifest-src 'self'",
            "worker-src 'self'",
            "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
            "require-trusted-types-for 'script'", "trusted-types worker",
        ].joined(separator: "; ")
    }

    func answer(_ request: HTTPHeaders) -> Answer {
        let accepted = AcceptedEncodings(request["accept-encoding"])
        // Without a form that is accepted, another one is sent (RFC 9110, section 12.5.3).
        let form = encoded.first { accepted.has($0.encoding) }?.form ?? plain ?? gzip
        let known = request["if-none-match"]
            .flatMap { $0.split(separator: ",") }
            .map { $0.drop { $0 == " " }.trimmingPrefix("W/") }
        guard !known.contains(where: { $0 == form.tag || $0 == "*" }) else {
            // There is no content that could be encoded.
            var headers = form.headers
            headers.remove(name: "Content-Encoding")
            return Answer(.notModified, headers: headers)
        }
        return Answer(headers: form.headers, body: form.body)
    }
}

/// The encodings that a request accepts (RFC 9110, section 12.5.3).
struct AcceptedEncodings: Hashable, Sendable {
    private var weights: [String: Double] = [:]

    /// A weight that is not a number is zero.
    init(_ headers: [String]) {
        for member in headers.flatMap({ $0.split(separator: ",") }) {
            let parts = member.split(separator: ";").map {
                $0.filter { $0 != " " && $0 != "\t" }.lowercased()
            }
            guard let name = parts.first else { continue }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }
            weights[name] = weight.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
        }
    }

    /// An encoding that is named counts before the asterisk.
    func has(_ encoding: String) -> Bool {
        weights[encoding] ?? weights["x-\(encoding)"] ?? weights["*"] ?? 0 > 0
    }
}
