// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// Callers that a node, and each of its connections, know from an earlier request.
struct KnownCallerTests {
    @Test(arguments: Backend.shared)
    func `a credential is good for a second if the news of its revocation is lost`(
        backend: Backend
    ) async throws {
        let folder = try TemporaryFolder()
        let clock = TestClock()
        let credential = Secret.random(prefix: Secret.devicePrefix)
        // Nobody listens to its news.
        let storage = try backend.open(in: folder)
        try storage.addCode("code")
        let device = try storage.redeem(
            SecretHash(of: "code"), by: Sample.newDevice(credential), now: 1_000
        ).device
        let threads = BlockingThreads(name: "test", count: 1, waitingMax: 9)
        defer { threads.close() }
        let gate = Gate(
            authenticator: Authenticator(
                storage: storage, threads: threads, operatorHash: nil,
                lastSeen: LastSeenBuffer(clock: clock.clock), clock: clock.clock),
            apps: AppRegistry(storage: storage, admission: .open), clock: clock.clock)
        let client = try await Client(credential, gate)
        #expect(try await client.caller() == .device(device.rights))
        #expect(try !storage.revoke(device.reference, now: 1_000, by: .operatorLocally).isEmpty)
        #expect(try await client.caller() == .device(device.rights))
        clock.advance(seconds: 1)
        #expect(try await client.caller() == .stranger)
    }

    @Test func `an operator's credential is no longer good once there is a new one`() async throws {
        let storage = try SQLiteServerStorage.inMemory()
        let threads = BlockingThreads(name: "test", count: 1, waitingMax: 9)
        defer { threads.close() }
        let clock = ServerClock.system
        let authenticator = Authenticator(
            storage: storage, threads: threads, operatorHash: SecretHash(of: "old"),
            lastSeen: LastSeenBuffer(clock: clock), clock: clock)
        let client = try await Client(
            "old",
            Gate(
                authenticator: authenticator,
                apps: AppRegistry(storage: storage, admission: .open), clock: clock))
        #expect(try await client.caller() == .operator)
        authenticator.adopt(operator: SecretHash(of: "new"))
        #expect(try await client.caller() == .stranger)
    }

    /// A client who sends requests on one connection.
    private struct Client {
        let credential: String
        let gate: Gate
        private let loop = MultiThreadedEventLoopGroup.singleton.any()
        private let connection: NIOLoopBound<HTTPConnection>

        init(_ credential: String, _ gate: Gate) async throws {
            (self.credential, self.gate) = (credential, gate)
            connection = try await loop.submit { [loop] in
                NIOLoopBound(HTTPConnection(on: loop), eventLoop: loop)
            }.get()
        }

        func caller() async throws -> Caller {
            try await withCheckedThrowingContinuation { continuation in
                loop.execute {
                    var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
                    head.headers.add(name: "authorization", value: "Bearer \(credential)")
                    Exchange(head, on: connection.value, origin: nil).findCaller(by: gate) {
                        continuation.resume(returning: $0)
                    }
                }
            }
        }
    }
}
