// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// The files of the page for people; what they do in a browser is for Tests/Web.
struct PageTests {
    /// Without it, the tests' client asks for gzip.
    private let plainly = ["Accept-Encoding": "identity"]
    /// A comparison whose difference nobody is shown: computing it would take for ever.
    private func isSame(_ body: [UInt8], _ form: ByteBuffer) -> Bool {
        body == [UInt8](form.readableBytesView)
    }

    @Test func `every file has its type, a strict policy, and a tag`() async throws {
        try await withServer { server in
            for file in PageFile.all {
                let answer = try await server.send("GET", file.path, headers: plainly)
                #expect(answer.status == 200)
                #expect(isSame(answer.body, file.plain ?? file.gzip))
                #expect(answer.headers["content-type"] == file.type)
                let caching = answer.headers["cache-control"]
                #expect(caching == "no-cache" || caching?.hasSuffix("immutable") == true)
                #expect(
                    (caching == "no-cache")
                        == ["/", "/operator", "/loading.js", "/worker.js"].contains(file.path))
                #expect(answer.headers["x-content-type-options"] == "nosniff")
                #expect(answer.headers["referrer-policy"] == "no-referrer")
                let policy = try #require(answer.headers["content-security-policy"])
                #expect(policy.contains("default-src 'none'"))
                // Compiling WebAssembly is all that is allowed beside the server's files.
                let rest = policy.replacing("script-src 'self' 'wasm-unsafe-eval'", with: "")
                #expect(rest != policy && !rest.contains("unsafe"))
                #expect(policy.contains("require-trusted-types-for 'script'"))
                let end = file.plain == nil ? 31 : 26
                #expect(answer.headers["etag"]?.count == end)
            }
        }
    }

    @Test func `the page names no other origin, and its scripts make no markup from text`() {
        #expect(PageFile.all.contains { $0.path == "/" })
        for file in PageFile.all where !file.path.contains("/client/") {
            guard let content = file.plain else { continue }
            let text = String(buffer: content)
                .replacing("http://www.w3.org/2000/svg", with: "")
                .replacing("http://127.0.0.1", with: "")
            #expect(!text.contains(#/https?:\/\//#), "\(file.path)")
            for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                #expect(!text.contains(word), "\(file.path)")
            }
        }
    }

    @Test func `a file goes by gzip to whoever takes that, under a tag of its own`() async throws {
        try await withServer { server in
            for file in PageFile.all where file.plain != nil {
                let plain = try await server.send("GET", file.path, headers: plainly)
                let gzip = try await server.send(
                    "GET", file.path, headers: ["Accept-Encoding": "br, gzip;q=0.5"])
                #expect(gzip.headers["content-encoding"] == "gzip")
                #expect(plain.headers["content-encoding"] == nil)
                #expect(isSame(gzip.body, file.gzip))
                #expect([plain, gzip].allSatisfy { $0.headers["vary"] == "Accept-Encoding" })
                let tag = try #require(gzip.headers["etag"])
                #expect(tag != plain.headers["etag"])
                for (encodings, status) in [("gzip", 304), ("identity", 200)] {
                    let again = try await server.send(
                        "GET", file.path,
                        headers: ["Accept-Encoding": encodings, "If-None-Match": tag])
                    #expect(again.status == status)
                }
            }
        }
    }

    @Test(arguments: ["br", "gzip", "identity"])
    func `each form comes byte for byte, and HEAD has the fields of GET`(encoding: String)
        async throws
    {
        try await withServer { server in
            for file in PageFile.all {
                let fields = ["Accept-Encoding": encoding]
                let get = try await server.send("GET", file.path, headers: fields)
                let encoded = ["br": file.brotli, "gzip": file.gzip][encoding] ?? nil
                let body = encoded ?? file.plain ?? file.gzip
                #expect(isSame(get.body, body))
                #expect(get.headers["content-length"] == "\(get.body.count)")
                let head = try await server.send("HEAD", file.path, headers: fields)
                #expect(head.body.isEmpty)
                let answered = [get, head].map { $0.headers.filter { $0.key != "date" } }
                #expect(answered[0] == answered[1])
            }
        }
    }

    @Test(arguments: ["icon.svg", "page.webmanifest"])
    func `a file that needs no change is embedded byte for byte`(name: String) throws {
        let file = try #require(PageFile.all.first { $0.path.hasSuffix("/\(name)") })
        let source = URL(fileURLWithPath: #filePath)
            .appendingPathComponent("../../../../Web/\(name)").standardizedFileURL
        #expect(try Data(contentsOf: source) == Data(#require(file.plain).readableBytesView))
    }

    @Test(arguments: [
        ("gzip", true), ("GZIP", true), ("deflate, gzip;q=1.0", true), ("*", true),
        ("br;q=1, *;q=0.1", true), ("x-gzip", true), ("", false), ("identity", false),
        ("gzip;q=0", false), ("gzip; q=0.000, *", false), ("*;q=0", false), ("gzip;q=x", false),
        ("gzipped", false), (";,;q=1,,", false),
    ])
    func `what a request says of encodings is understood`(header: String, hasGzip: Bool) {
        #expect(AcceptedEncodings([header]).has("gzip") == hasGzip)
        #expect(AcceptedEncodings(["br", header]).has("gzip") == hasGzip)
        #expect(AcceptedEncodings(["br", header]).has("br"))
    }

    @Test func `the page may reach the identity provider if it knows one, and nothing more`()
        async throws
    {
        let page = try #require(
            PageProvider(issuer: "https://id.example:8443/realm", client: "page"))
        let settings = IdentitySettings(
            rule: IdentityRule(issuer: page.issuer, audiences: ["page"]),
            keys: .address("https://k"),
            page: page)
        for identity in [settings, nil] {
            try await withServer({ $0.identity = identity }) { server in
                let config = try await server.send("GET", "/v1/config").message(WireConfig.self)
                #expect(config.hasIdentityProvider == (identity != nil))
                #expect(config.identityProvider.client == (identity == nil ? "" : "page"))
                #expect(config.identityProvider.issuer == (identity == nil ? "" : page.issuer))
                let answer = try await server.send("GET", "/")
                let policy = try #require(answer.headers["content-security-policy"])
                let reachable = policy.split(separator: "; ").first { $0.hasPrefix("connect-src") }
                    .map(String.init)
                #expect(
                    reachable == "connect-src 'self'"
                        + (identity == nil ? "" : " https://id.example:8443"))
            }
        }
    }

    @Test(arguments: [
        "http://id.example", "id.example", "https://", "https://a b", "https://id.example; x",
        "https://id.example/a;b'c\r\nX: y", "https://user@id.example", "https://id.example?a",
        "https://id.example#a", "https://*.example", "ftp://id.example", "https://id.example:",
        "https://localhost.\u{e9}", "http://127.0.0.1.example",
    ])
    func `an issuer that would be more than an origin in a header is none for the page`(
        issuer: String
    ) {
        #expect(PageProvider(issuer: issuer, client: "page") == nil)
    }

    @Test func `a server without the page does not know its addresses`() async throws {
        try await withServer({ $0.servesPage = false }) { server in
            for path in PageFile.all.map(\.path) {
                let answer = try await server.send("GET", path)
                #expect(answer.status == 404)
            }
        }
    }
}
