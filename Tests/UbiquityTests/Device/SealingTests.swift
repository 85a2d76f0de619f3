// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import NIOHTTP1
import Synchronization
import Testing
import Ubiquity
import UbiquityCore
import UbiquityWire

/// What a device does to have its account sealed, with a server that answers as it is told.
@Suite struct `A device that seals its account` {
    private static let key = Bytes32([UInt8](0..<32))!
    private static let keyring = Keyring([1: .account(key)])
    private static let store = try! StoreIdentifier("notes")
    private static let cursor = Position(epoch: 1, revision: 2).cursor

    private let folder: TemporaryFolder
    private let home: DeviceHome

    init() throws {
        folder = try TemporaryFolder()
        home = try DeviceHome(path: folder.file("home"))
    }

    private func signIn(to server: StubServer) throws {
        try home.update { state in
            state.signIn(
                SignedInAccount(
                    server: server.address, account: "42", accountName: "Ada", device: "00ff",
                    deviceName: "desk", credential: "secret"))
        }
    }

    private func keep(_ keyring: Keyring) throws {
        try home.update { state in
            do { try state.keep(keyring) } catch { Issue.record(error) }
        }
    }

    private static func mark(_ keyring: Keyring?, unsealed: [String] = []) -> StubServer.Reply {
        var wire = WireSealing()
        wire.generation = keyring?.current ?? 0
        wire.check = Data(keyring?.check?.bytes ?? [])
        wire.unsealed = unsealed
        return .init(body: WireFormat.protobuf.encode(wire))
    }

    private static func problem(_ status: Int, _ code: String) -> StubServer.Reply {
        var wire = WireProblem()
        (wire.status, wire.code) = (UInt32(status), code)
        return .init(
            "application/x-protobuf", status: .init(statusCode: status),
            WireFormat.protobuf.encode(wire))
    }

    private static func whole(_ records: [Record]) -> StubServer.Reply {
        var wire = WireChanges()
        (wire.cursor, wire.whole, wire.serverMilliseconds) = (cursor.text, true, 5)
        wire.records = records.map(WireRecord.init)
        return .init(body: WireFormat.protobuf.encode(wire))
    }

    private static func record(_ key: String, sealedBy keyring: Keyring? = nil) throws -> Record {
        let record = Record(
            key: try Key(key), content: .value(.string("text")),
            stamp: Stamp(HybridTimestamp(milliseconds: 5, counter: 0), DeviceID(rawValue: 1)))
        return keyring?.sealer(of: store)?.seal(record) ?? record
    }

    @Test func `reads a store again that has changed, and replaces it sealed`() async throws {
        let tries = Mutex(0)
        let isSealed = Mutex(false)
        let clear = try Self.record("k")
        let server = try await StubServer { request in
            if request.uri == "/v1/sealing" {
                return Self.mark(Self.keyring, unsealed: isSealed.withLock { $0 } ? [] : ["notes"])
            }
            if request.method == .GET { return Self.whole([clear]) }
            let count = tries.withLock { tries in
                tries += 1
                return tries
            }
            if count < 3 { return Self.problem(409, "store-changed") }
            isSealed.withLock { $0 = true }
            return .init(status: .noContent)
        }
        try signIn(to: server)
        try keep(Self.keyring)
        let sealed = Mutex<[StoreIdentifier]>([])
        // Another device began it: a person has to say so.
        #expect(try await home.continueSealing().step == .seal(Self.store))
        #expect(server.requests.allSatisfy { $0.method == .GET })
        let progress = try await home.continueSealing(finishing: true) { store, _ in
            sealed.withLock { $0 += [store] }
        }
        #expect(progress.step == .done && !progress.isLocked)
        #expect(sealed.withLock { $0 } == [Self.store])
        let puts = server.requests.filter { $0.method == .PUT }
        try #require(puts.count == 3)
        let sent = try WireFormat.protobuf.decode(WireWholeStore.self, from: puts[2].body)
        #expect(sent.cursor == Self.cursor.text && sent.generation == 1)
        #expect(try sent.records.map { wire in try Record(wire).content.isSealed } == [true])
    }

    @Test func `removes what its keys do not open only if a person says so`() async throws {
        let other = Keyring([1: .account(Bytes32([UInt8](1...32))!)])
        let strange = try Self.record("strange", sealedBy: other)
        let next = try #require(Self.keyring.adding(Bytes32([UInt8](2...33))!, at: 1))
        let isSealed = Mutex(false)
        let own = try Self.record("own", sealedBy: Self.keyring)
        let server = try await StubServer { request in
            if request.uri == "/v1/sealing" {
                return Self.mark(next, unsealed: isSealed.withLock { $0 } ? [] : ["notes"])
            }
            if request.method == .GET { return Self.whole([own, strange]) }
            isSealed.withLock { $0 = true }
            return .init(status: .noContent)
        }
        try signIn(to: server)
        try keep(next)
        await #expect(throws: SealingError.unopened(Self.store, [strange.key])) {
            try await home.continueSealing(finishing: true)
        }
        #expect(server.requests.allSatisfy { $0.method == .GET })
        var plan = SealingPlan(next)
        plan.removed[Self.store] = [try Key("another")]
        await #expect(throws: SealingError.unopened(Self.store, [strange.key])) {
            try await home.continueSealing(plan, finishing: true)
        }
        plan.removed[Self.store] = [strange.key]
        #expect(try await home.continueSealing(plan, finishing: true).step == .done)
        let put = try #require(server.requests.first { $0.method == .PUT })
        let sent = try WireFormat.protobuf.decode(WireWholeStore.self, from: put.body)
        #expect(sent.records.map(\.key) == ["own"])
    }

    @Test func `sends nothing of a store in which a server has put a clear value`() async throws {
        let next = try #require(Self.keyring.adding(Bytes32([UInt8](2...33))!, at: 1))
        let clear = try Self.record("k")
        let server = try await StubServer { request in
            request.uri == "/v1/sealing"
                ? Self.mark(next, unsealed: ["notes"]) : Self.whole([clear])
        }
        try signIn(to: server)
        try keep(Self.keyring)
        try home.update { $0.proposal = next }
        for finishing in [false, true] {
            await #expect(throws: SealingError.fault(Self.store, .clearValue(clear.key))) {
                try await home.continueSealing(finishing: finishing)
            }
        }
        #expect(server.requests.allSatisfy { $0.method == .GET })
    }

    @Test func `keeps a proposal until it is the account's key, or another one is`() async throws {
        let mark = Mutex<Keyring?>(nil)
        let server = try await StubServer { _ in Self.mark(mark.withLock { $0 }) }
        try signIn(to: server)
        #expect(try await home.continueSealing().step == .propose)
        func propose() throws -> Keyring {
            let proposal = try #require(Keyring([:]).adding(.random(), at: 1))
            try home.update { $0.proposal = proposal }
            return proposal
        }
        _ = try propose()
        #expect(try await home.continueSealing().step == .mark)
        mark.withLock { $0 = Self.keyring }
        let lost = try await home.continueSealing()
        #expect(lost.step == .getKey && lost.isLocked)
        #expect(try home.load().proposal == nil)
        mark.withLock { $0 = nil }
        let second = try propose()
        mark.withLock { $0 = second }
        #expect(try await home.continueSealing().step == .done)
        #expect(try home.load().keyring == second)
        mark.withLock { $0 = nil }
        #expect(try await home.continueSealing().step == .restored)
    }

    @Test func `takes only the keys that the account is sealed with`() async throws {
        let next = try #require(Self.keyring.adding(Bytes32([UInt8](2...33))!, at: 1))
        let server = try await StubServer { _ in Self.mark(next) }
        try signIn(to: server)
        let account = try #require(try home.load().signedIn)
        await #expect(throws: KeyringRefusal.older) {
            try await home.keep(Self.keyring, of: account)
        }
        let other = try #require(Self.keyring.adding(Bytes32([UInt8](3...34))!, at: 1))
        await #expect(throws: KeyringRefusal.other) { try await home.keep(other, of: account) }
        let later = try #require(next.adding(Self.key, at: 1))
        await #expect(throws: KeyringRefusal.other) { try await home.keep(later, of: account) }
        var stranger = account
        stranger.account = "another"
        await #expect(throws: SealingError.signedOut) { try await home.keep(next, of: stranger) }
        #expect(try home.load().keyring == nil)
        try await home.keep(next, of: account)
        #expect(try home.load().keyring == next)
    }

    // MARK: - Signing in

    /// A server that signs a device in.
    /// - Parameter box: The handover that it has.
    private func server(_ mark: Keyring?, box: [UInt8]? = nil) async throws -> StubServer {
        var handover = WireHandover()
        handover.box = Data(box ?? [])
        let handed = WireFormat.protobuf.encode(handover)
        var answer = WireSignInAnswer()
        (answer.account, answer.accountName) = ("42", "Ada")
        (answer.device, answer.credential) = ("00000000000000ff", "secret")
        let body = WireFormat.protobuf.encode(answer)
        return try await StubServer { request in
            switch request.uri {
            case "/v1/sign-in": .init(body: body)
            case "/v1/sealing": Self.mark(mark)
            case let uri where uri.hasPrefix("/v1/handovers/"):
                box == nil ? Self.problem(404, "not-found") : .init(body: handed)
            default: .init(status: .noContent)
            }
        }
    }

    @Test func `is not signed in to a clear account by a code whose secret nobody has answered`()
        async throws
    {
        let strange = try Handover.notSealed.sealed(of: "42", with: .random())
        for box in [nil, strange, []] {
            let server = try await server(nil, box: box)
            await #expect(throws: UnsealedDoubt.unanswered) {
                try await home.signIn(
                    server: server.address, by: .code("1"), deviceName: "d", secret: .random())
            }
            #expect(try home.load().signedIn == nil)
            #expect(server.requests.last?.method == .DELETE)
            let asked = try await home.signIn(
                server: server.address, by: .code("1"), deviceName: "d", secret: .random(),
                acceptsUnsealed: { $0 == .unanswered })
            #expect(!asked.sealing.isSealed && !asked.isVouched)
            _ = try home.endSignIn(wipes: true)
        }
    }

    @Test func `is locked by what another device says, or else the server`() async throws {
        let secret = HandoverSecret.random()
        for (handover, mark): (Handover?, Keyring?) in [
            (.noKey, nil), (.noKey, Self.keyring), (.notSealed, Self.keyring), (nil, Self.keyring),
        ] {
            let box = try handover?.sealed(of: "42", with: secret)
            let server = try await server(mark, box: box)
            let signedIn = try await home.signIn(
                server: server.address, by: .code("1"), deviceName: "d", secret: secret)
            #expect(signedIn.sealing.isSealed && signedIn.isVouched == (handover != nil))
            #expect(signedIn.sealing.isLocked == (mark != nil))
            #expect(signedIn.sealing.step == (mark == nil ? .restored : .getKey))
            #expect(try home.load().sealing?.isSealed == true)
            _ = try home.endSignIn(wipes: true)
        }
        // A device that has never had another one is asked nothing.
        let box = try Handover.notSealed.sealed(of: "42", with: secret)
        let clear = try await server(nil, box: box)
        let other = try DeviceHome(path: home.path + "/other")
        let signedIn = try await other.signIn(
            server: clear.address, by: .code("1"), deviceName: "d", secret: secret)
        #expect(!signedIn.sealing.isSealed && signedIn.isVouched)
    }

    @Test func `takes no keys at a sign-in that do not go on from its own`() async throws {
        let next = try #require(Self.keyring.adding(Bytes32([UInt8](2...33))!, at: 1))
        let other = Keyring([1: .account(Bytes32([UInt8](1...32))!)])
        let secret = HandoverSecret.random()
        func signIn(_ keyring: Keyring, mark: Keyring?) async throws -> DeviceHome.SignIn {
            let box = try Handover.keys(keyring).sealed(of: "42", with: secret)
            let server = try await server(mark, box: box)
            do {
                return try await home.signIn(
                    server: server.address, by: .code("1"), deviceName: "d", secret: secret)
            } catch {
                #expect(server.requests.last?.method == .DELETE)
                throw error
            }
        }
        #expect(try await signIn(next, mark: next).sealing.step == .done)
        _ = try home.endSignIn(wipes: false)
        let state = try home.load()
        // After a forged sign-out, by a code of the server's friend.
        await #expect(throws: KeyringRefusal.unrelated) { _ = try await signIn(other, mark: other) }
        await #expect(throws: KeyringRefusal.other) {
            _ = try await signIn(other, mark: Self.keyring)
        }
        await #expect(throws: KeyringRefusal.other) { _ = try await signIn(next, mark: nil) }
        #expect(try home.load() == state)
        // Keys from before take nothing away.
        #expect(try await signIn(Self.keyring, mark: next).sealing.step == .done)
        #expect(try home.load().keyring == next)
    }

    @Test func `is locked after a sign-in with keys from before the present one`() async throws {
        let next = try #require(Self.keyring.adding(Bytes32([UInt8](2...33))!, at: 1))
        let secret = HandoverSecret.random()
        let box = try Handover.keys(Self.keyring).sealed(of: "42", with: secret)
        let server = try await server(next, box: box)
        let signedIn = try await home.signIn(
            server: server.address, by: .code("1"), deviceName: "d", secret: secret)
        #expect(signedIn.sealing.isLocked && signedIn.sealing.keyring == Self.keyring)
        try await home.keep(next, of: signedIn.account)
        #expect(try home.load().keyring == next)
    }

    @Test func `keeps a key before its mark is sent, unless another program has gone on`()
        async throws
    {
        let statuses = Mutex<[Int]>([204])
        let isKept = Mutex(false)
        let home = home
        let server = try await StubServer { request in
            guard request.method == .PUT else { return Self.mark(nil) }
            isKept.withLock { $0 = (try? home.load().proposal) != nil }
            let status = statuses.withLock { $0.removeFirst() }
            return status == 204 ? .init(status: .noContent) : Self.problem(status, "proof")
        }
        try signIn(to: server)
        let progress = try await home.sealing()
        let plan = SealingPlan(try #require(Keyring([:]).adding(.random(), at: 1)))
        try home.update { $0.proposal = Self.keyring }
        await #expect(throws: SealingError.otherProposal) {
            try await home.mark(plan, recovery: [], after: progress)
        }
        #expect(server.requests.allSatisfy { $0.method == .GET })
        try home.update { $0.proposal = nil }
        try await home.mark(plan, recovery: [1], after: progress)
        #expect(isKept.withLock { $0 })
        #expect(try home.load().proposal == plan.keyring)
        // What the server has refused is nobody's key.
        statuses.withLock { $0 = [403] }
        await #expect(throws: LinkFailure.self) {
            try await home.mark(plan, recovery: [1], after: progress)
        }
        #expect(try home.load().proposal == nil)
    }

    @Test func `is asked before it signs in to an account that is not sealed, at any address`()
        async throws
    {
        let server = try await server(nil)
        try home.update { $0.sealedAccounts = ["another"] }
        await #expect(throws: UnsealedDoubt.hadSealed) {
            try await home.signIn(server: server.address, by: .code("1"), deviceName: "d")
        }
        #expect(try home.load().signedIn == nil)
        let signedIn = try await home.signIn(
            server: server.address, by: .code("1"), deviceName: "d", acceptsUnsealed: { _ in true })
        #expect(signedIn.sealing.step == .propose)
        #expect(try home.load().signedIn?.account == "42")
    }
}
