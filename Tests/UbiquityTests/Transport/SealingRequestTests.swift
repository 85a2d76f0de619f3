// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import NIOHTTP1
import Testing
import Ubiquity
import UbiquityCore
import UbiquityWire

@Suite struct `A request about a sealed account` {
    private static let keyring = Keyring([3: .account(Bytes32([UInt8](0..<32))!)])

    private func account(_ server: StubServer) -> SignedInAccount {
        SignedInAccount(
            server: server.address, account: "42", accountName: "Ada", device: "00ff",
            deviceName: "desk", credential: "secret")
    }

    @Test func `reads the mark, and what is not sealed yet`() async throws {
        var wire = WireSealing()
        (wire.generation, wire.check) = (3, Data(0..<32))
        (wire.recovery, wire.unsealed) = (Data([1, 2]), ["a", "no/store", "b"])
        (wire.endsMilliseconds, wire.sealedMilliseconds) = (9, 7)
        (wire.sealedBy, wire.sealedByName) = ("00000000000000ff", "desk")
        let body = WireFormat.protobuf.encode(wire)
        let server = try await StubServer { _ in .init(body: body) }
        let sealing = try await AccountClient.sealing(account(server))
        #expect(sealing.generation == 3 && sealing.check == Bytes32([UInt8](0..<32)))
        #expect(sealing.recovery == [1, 2])
        #expect(sealing.unsealed.map(\.string) == ["a", "b"])
        let author = SealingState.Author(
            device: DeviceID(rawValue: 255), name: "desk", milliseconds: 7)
        #expect(sealing.ends == 9 && sealing.author == author)
        let request = try #require(server.requests.first)
        #expect(request.method == .GET && request.uri == "/v1/sealing")
        #expect(request.headers["authorization"] == ["Bearer secret"])
    }

    @Test func `reads that an account is not sealed`() async throws {
        let server = try await StubServer { _ in .init() }
        let sealing = try await AccountClient.sealing(account(server))
        #expect(sealing.generation == 0 && sealing.check == nil && sealing.unsealed.isEmpty)
        #expect(sealing.ends == nil && sealing.author == nil)
    }

    @Test func `sets the mark with the key's own code, and resets it`() async throws {
        let server = try await StubServer { _ in .init(status: .noContent) }
        try await AccountClient.seal(Self.keyring, recovery: [7], after: 3, account(server))
        try await AccountClient.seal(Self.keyring, recovery: [7], after: 0, account(server))
        let proof = try #require(Self.keyring.proof(of: 3))
        try await AccountClient.resetSealing(account(server), proof: proof)
        try await AccountClient.resetSealing(account(server), proof: nil)
        let requests = server.requests
        #expect(requests.map(\.method) == [.PUT, .PUT, .DELETE, .DELETE])
        #expect(requests.allSatisfy { $0.uri == "/v1/sealing" })
        let shown = Data(proof.bytes).base64EncodedString()
        #expect(
            requests.map { $0.headers["ubiquity-key-proof"] } == [[shown], [], [shown], []])
        let wire = try WireFormat.protobuf.decode(WireSealing.self, from: requests[0].body)
        #expect(wire.generation == 3 && Bytes32(wire.check) == Self.keyring.check)
        #expect(wire.recovery == Data([7]) && wire.unsealed.isEmpty)
    }

    @Test func `leaves keys for another device, and takes them`() async throws {
        let secret = HandoverSecret.random()
        let box = try #require(Handover.seal(Self.keyring, of: "42", with: secret))
        var wire = WireHandover()
        wire.box = Data(box)
        let body = WireFormat.protobuf.encode(wire)
        let server = try await StubServer { request in
            request.method == .GET ? .init(body: body) : .init(status: .noContent)
        }
        try await AccountClient.handOver(Self.keyring, with: secret, account(server))
        let taken = try await AccountClient.handover(with: secret, account(server))
        #expect(taken == Self.keyring)
        let path = "/v1/handovers/" + HandoverName(of: secret, in: "42").text
        let requests = server.requests
        #expect(requests.map(\.method) == [.PUT, .GET])
        #expect(requests.allSatisfy { $0.uri == path })
        let sent = try WireFormat.protobuf.decode(WireHandover.self, from: requests[0].body)
        #expect([UInt8](sent.box) == box)
        await #expect(throws: LinkFailure.self) {
            try await AccountClient.handover(with: .random(), account(server))
        }
    }

    @Test func `is not made with the keys of a confined device`() async throws {
        let server = try await StubServer { _ in .init(status: .noContent) }
        let confined = Self.keyring.confined(to: [try StoreIdentifier("a")])
        await #expect(throws: LinkFailure.self) {
            try await AccountClient.seal(confined, recovery: [7], after: 3, account(server))
        }
        #expect(server.requests.isEmpty)
    }

    @Test func `reads a whole store and replaces it`() async throws {
        let record = Record(
            key: try Key("k"), content: .value(.boolean(true)),
            stamp: Stamp(HybridTimestamp(milliseconds: 5, counter: 0), DeviceID(rawValue: 1)))
        let cursor = Position(epoch: 1, revision: 2).cursor
        var wire = WireChanges()
        (wire.cursor, wire.whole, wire.records) = (cursor.text, true, [WireRecord(record)])
        wire.serverMilliseconds = 5
        let body = WireFormat.protobuf.encode(wire)
        let server = try await StubServer { request in
            request.method == .GET ? .init(body: body) : .init(status: .noContent)
        }
        let store = try StoreIdentifier("com.example.app")
        let whole = try await AccountClient.wholeStore(store, generation: 3, account(server))
        #expect(whole.records == [record] && whole.cursor == cursor && whole.isWhole)
        let sealed = try #require(Self.keyring.sealer(of: store)).seal(record)
        try await AccountClient.replace(
            store, by: [sealed], at: cursor, keyring: Self.keyring, account(server))
        let requests = server.requests
        #expect(requests.map(\.method) == [.GET, .PUT])
        #expect(
            requests.allSatisfy { $0.uri == "/v1/stores/com.example.app/whole?generation=3" })
        let sent = try WireFormat.protobuf.decode(WireWholeStore.self, from: requests[1].body)
        #expect(sent.cursor == cursor.text && sent.generation == 3)
        #expect(try sent.records.map { wire in try Record(wire) } == [sealed])
    }
}
