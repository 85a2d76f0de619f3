// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import Testing

@testable internal import UbiquityServer

/// The document of the protocol's requests, and the server's router.
struct OpenAPITests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `the document has the router's addresses, each with its methods`() async throws {
        let documented = try Self.documented()
        try await withServer(in: folder) { server in
            var served: [String: Set<String>] = [:]
            for path in try Self.routed(in: folder) {
                // A method that no address has: the refusal lists those that this one has.
                let answer = try await server.send("QUERY", path)
                try #require(answer.status == 405, "\(path)")
                let methods = try #require(answer.headers["allow"]).split(separator: ", ")
                // Those go without saying.
                served[path] = Set(methods.map(String.init)).subtracting(["HEAD", "OPTIONS"])
            }
            #expect(served == documented)
        }
    }

    /// The addresses of all routes.
    private static func routed(in folder: TemporaryFolder) throws -> Set<String> {
        let server = Server(
            ServerSettings(dataFolder: folder.path), storage: try SQLiteServerStorage.inMemory(),
            operatorHash: SecretHash(of: ""),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        // The page is not part of the protocol.
        let page = Set(PageFile.all.map(\.path))
        return Set(server.routes.all.map(\.path)).subtracting(page)
    }

    /// The lines "  /path:" below "paths:", and below each of them "    method:".
    private static func documented() throws -> [String: Set<String>] {
        let file = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().appendingPathComponent("../../../Protocol/openapi.yaml")
        var methods: [String: Set<String>] = [:]
        var path: String?
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            if let found = line.wholeMatch(of: #/  (\/[^ ]*):/#) { path = String(found.1) }
            if !line.hasPrefix(" ") { path = nil }
            if let path, let found = line.wholeMatch(of: #/    (get|put|post|delete|patch):/#) {
                methods[path, default: []].insert(found.1.uppercased())
            }
        }
        return methods
    }
}
