// SPDX-License-Identifier: Apache-2.0

internal import AsyncHTTPClient
internal import Foundation
internal import NIOCore
internal import NIOHTTP1

/// Loads an identity provider's keys.
struct IdentityKeySource: Sendable {
    let place: IdentitySettings.Keys

    private static let secondsMax: Int64 = 10

    /// - Throws: ``Failure``.
    func load() async throws(Failure) -> JSONWebKeys {
        do {
            switch place {
            case .file(let path): return try Self.keys(inFile: path)
            case .address(let url): return try JSONWebKeys(parsing: await Self.fetch(url))
            }
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(reason: "\(error)")
        }
    }

    /// The reason for the operator's log.
    struct Failure: Error { var reason: String }

    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)``.
    static func keys(inFile path: String) throws(ServerStartError) -> JSONWebKeys {
        guard let bytes = try PrivateFile.readPublic(path) else {
            throw .fileUnusable(path: path, reason: "there is no such file")
        }
        do { return try JSONWebKeys(parsing: Data(bytes)) } catch {
            throw .fileUnusable(path: path, reason: "\(error)")
        }
    }

    private static func fetch(_ url: String) async throws -> Data {
        var request = HTTPClientRequest(url: url)
        request.headers.add(name: "accept", value: "application/json")
        let response = try await client.execute(request, timeout: .seconds(secondsMax))
        guard response.status == .ok else {
            throw Failure(reason: "\(url) answers with the status \(response.status.code)")
        }
        return Data(
            try await response.body.collect(upTo: JSONWebKeys.bytesMax).readableBytesView)
    }

    /// Never shut down: it lives as long as the process.
    private static let client = HTTPClient(
        eventLoopGroup: HTTPClient.defaultEventLoopGroup,
        configuration: .init(redirectConfiguration: .disallow))
}

extension IdentitySettings {
    /// Checks the file at the start of the server, so that a problem is not discovered only at the
    /// first sign-in. An address is not checked, because it may be unavailable for a moment.
    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)``.
    func checkFile() throws(ServerStartError) {
        if case .file(let path) = keys { _ = try IdentityKeySource.keys(inFile: path) }
    }
}
