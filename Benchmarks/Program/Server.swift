// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Synchronization

/// A real server in a process of its own, with one account. Its calls wait on their thread.
final class Server {
    private let process: ServerProcess
    private let folder: String
    private var devices = 0
    private static let account = "benchmark"

    init(_ stage: Stage, name: String) throws {
        folder = stage.path("server-\(name)")
        process = ServerProcess(
            stage, data: folder,
            options: [
                "--push-burst", "100000000", "--pushes-per-second", "1000000",
                "--request-burst", "100000000", "--requests-per-second", "1000000",
            ])
        try wait { [process] in
            try await process.start()
            _ = try await process.newCode(isFirst: true, account: Self.account)
        }
    }

    var port: Int { process.port }

    func end() { try? wait { [process] in try await process.stop() } }

    /// - Returns: The home of a device that is signed in and has never opened a store.
    func newDevice() throws -> String {
        devices += 1
        let (name, home) = ("device-\(devices)", "\(folder)-device-\(devices)")
        return try wait { [process] in
            try await process.signIn(name, account: Self.account, home: home)
        }
    }

    private struct Enrolled: Decodable { var credential: String }

    /// - Returns: The credential of a device that speaks the protocol itself.
    func newCredential() throws -> String {
        let code = try wait { [process] in try await process.newCode(account: Self.account) }
        let body = "{\"code\":\"\(code)\",\"deviceName\":\"raw\"}"
        let connection = try HTTPConnection(port: port)
        let answer = try connection.exchange(
            HTTPConnection.request("POST", "/v1/sign-in", body: body))
        return try JSONDecoder().decode(Enrolled.self, from: Data(answer)).credential
    }
}

/// Waits on this thread. Not for a thread that tasks need.
func wait<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
    let done = DispatchSemaphore(value: 0)
    let result = Mutex<Result<Value, any Error>?>(nil)
    Task.detached {
        let outcome: Result<Value, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        result.withLock { $0 = outcome }
        done.signal()
    }
    done.wait()
    return try result.withLock(\.self)!.get()
}
