// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityHTTP

/// Loads an identity provider's keys.
struct IdentityKeySource: Sendable {
    let place: IdentitySettings.Keys

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
        var request = HTTPRequest("GET", url)
        request.fields = [("accept", "application/json")]
        let receiver = KeyReceiver(url)
        let body = try await withCheckedThrowingContinuation { continuation in
            receiver.result.withLock { $0 = continuation }
            let cancel = CurlClient.shared.begin(request, receiver)
            DispatchQueue.global().asyncAfter(
                deadline: .now() + KeyReceiver.secondsMax, execute: cancel)
        }
        return Data(body)
    }
}

/// Collects the answer of an identity provider.
///
/// Shared state: `result`, guarded by its mutex. `body` belongs to the client's queue.
private final class KeyReceiver: HTTPReceiver, @unchecked Sendable {
    /// The longest time for an answer.
    static let secondsMax: Double = 10

    let result = Mutex<CheckedContinuation<[UInt8], any Error>?>(nil)
    private let url: String
    private var body: [UInt8] = []

    init(_ url: String) { self.url = url }

    var silenceMillisecondsMax: Int64 { Int64(Self.secondsMax * 1_000) }

    func began(_ head: HTTPAnswerHead) throws {
        guard head.status == 200 else {
            throw IdentityKeySource.Failure(reason: "\(url) answers with the status \(head.status)")
        }
    }

    func received(_ piece: UnsafeRawBufferPointer) throws {
        guard body.count + piece.count <= JSONWebKeys.bytesMax else {
            throw IdentityKeySource.Failure(reason: "the answer of \(url) is too long")
        }
        body += piece
    }

    func ended(_ error: (any Error)?) {
        let continuation = result.withLock { $0.take() }
        if let error {
            continuation?.resume(throwing: error)
        } else {
            continuation?.resume(returning: body)
        }
    }
}

extension IdentitySettings {
    /// Checks the file at the start of the server, so that a problem is not discovered only at the
    /// first sign-in. An address is not checked, because it may be unavailable for a moment.
    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)``.
    func checkFile() throws(ServerStartError) {
        if case .file(let path) = keys { _ = try IdentityKeySource.keys(inFile: path) }
    }
}
