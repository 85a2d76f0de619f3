// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Testing

@testable internal import UbiquityServer

/// The files of the page for people; what they do in a browser is for Tests/Web.
struct PageTests {
    @Test func `every file has its type, a strict policy, and a tag`() async throws {
        try await withServer { server in
            for file in PageFile.all {
                let answer = try await server.send("GET", file.path)
                #expect(answer.status == 200)
                #expect(answer.text == file.text)
                #expect(answer.headers["content-type"] == file.type)
                #expect(answer.headers["cache-control"] == "no-cache")
                #expect(answer.headers["x-content-type-options"] == "nosniff")
                #expect(answer.headers["referrer-policy"] == "no-referrer")
                let policy = try #require(answer.headers["content-security-policy"])
                #expect(policy.contains("default-src 'none'") && !policy.contains("unsafe"))
                #expect(policy.contains("require-trusted-types-for 'script'"))
                #expect(answer.headers["etag"]?.count == 26)
            }
        }
    }

    @Test func `the page names no other origin, and its scripts make no markup from text`() {
        #expect(PageFile.all.contains { $0.path == "/" })
        for file in PageFile.all where !file.path.hasPrefix("/app/client/") {
            let text = file.text.replacing("http://www.w3.org/2000/svg", with: "")
                .replacing("http://127.0.0.1", with: "")
            #expect(!text.contains(#/https?:\/\//#), "\(file.path)")
            for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                #expect(!text.contains(word), "\(file.path)")
            }
        }
    }

    @Test func `a server without the page does not know its addresses`() async throws {
        try await withServer({ $0.servesPage = false }) { server in
            for path in ["/", "/app/main.js"] {
                let answer = try await server.send("GET", path)
                #expect(answer.status == 404)
            }
        }
    }
}
