// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import NIOHTTP1
import Testing
import Ubiquity
import UbiquityCore
import UbiquityWire

/// Tests a device's requests about the past, and what it takes from the responses.
struct HistoryRequestTests {
    private let version = RecordVersion(
        record: Record(
            key: try! Key("a/ä"), content: .value(.integer(1)),
            stamp: Stamp(
                HybridTimestamp(milliseconds: 9), DeviceID(rawValue: 0xABCD), digest: 7)),
        came: .init(revision: 3, milliseconds: 11),
        outcome: .replaced(
            .init(revision: 4, milliseconds: 12),
            by: Stamp(HybridTimestamp(milliseconds: 10), DeviceID(rawValue: 2))))

    private func transport(_ server: String) throws -> HTTPTransport {
        HTTPTransport(
            server: server, store: try StoreIdentifier("TEAM.com.example"), credential: "secret",
            device: DeviceID(rawValue: 1))
    }

    private func reply(_ message: some WireMessage) -> StubServer.Reply {
        .init(
            headers: ["content-type": "application/x-protobuf"],
            body: WireFormat.protobuf.encode(message))
    }

    private func result<Answer: Sendable>(
        _ begin: (@escaping @Sendable (Result<Answer, LinkFailure>) -> Void) -> Void
    ) async -> Result<Answer, LinkFailure> {
        await withCheckedContinuation { continuation in
            begin { continuation.resume(returning: $0) }
        }
    }

    @Test func `a page of a key's history`() async throws {
        var wire = WireHistory()
        wire.versions = [WireVersion(version)]
        wire.next = "7-8"
        wire.serverMilliseconds = 13
        let answer = reply(wire)
        let server = try await StubServer { _ in answer }
        let transport = try transport(server.address)
        let page = try await result {
            transport.history(
                of: version.record.key, from: "5&6", max: 100, answered: $0)
        }.get()
        #expect(page == HistoryPage(versions: [version], next: "7-8", serverMilliseconds: 13))
        let request = try #require(server.requests.first)
        #expect(
            request.uri
                == "/v1/stores/TEAM.com.example/history?limit=100&key=a%2F%C3%A4&before=5%266")
        #expect(request.headers["authorization"] == ["Bearer secret"])
    }

    @Test func `the store as it was, without deletions`() async throws {
        let snapshot = StoreSnapshot(
            records: [version.record], revision: 5, forgottenKeys: [try Key("f")],
            serverMilliseconds: 13)
        let answer = reply(WireSnapshot(snapshot))
        let server = try await StubServer { _ in answer }
        let transport = try transport(server.address)
        let read = await result { transport.snapshot(at: .milliseconds(17), answered: $0) }
        #expect(read == .success(snapshot))
        _ = await result { transport.snapshot(at: .revision(5), answered: $0) }
        #expect(
            server.requests.map(\.uri) == [
                "/v1/stores/TEAM.com.example/snapshot?milliseconds=17",
                "/v1/stores/TEAM.com.example/snapshot?revision=5",
            ])
    }

    @Test func `a server of an older version keeps no history`() async throws {
        var problem = WireProblem()
        (problem.status, problem.code, problem.detail) = (
            404, "not-found", "There is nothing here."
        )
        let body = WireFormat.protobuf.encode(problem)
        let server = try await StubServer { _ in
            .init(
                status: .notFound, headers: ["content-type": "application/x-protobuf"], body: body)
        }
        let transport = try transport(server.address)
        let read = await result { transport.history(of: nil, from: nil, max: 1, answered: $0) }
        guard case .failure(let failure) = read else {
            Issue.record("it was answered")
            return
        }
        #expect(failure.kind == .refused)
        #expect(failure.detail.hasSuffix("is of a version that keeps no history"))
    }

    @Test func `a history that is no history is no answer`() async throws {
        var wire = WireHistory()
        wire.versions = [WireVersion()]
        let answer = reply(wire)
        let server = try await StubServer { _ in answer }
        let transport = try transport(server.address)
        let read = await result { transport.history(of: nil, from: nil, max: 1, answered: $0) }
        guard case .failure(let failure) = read else {
            Issue.record("it was taken")
            return
        }
        #expect(failure.kind == .unreachable)
        #expect(failure.detail.contains("versions[0]"))
    }
}
