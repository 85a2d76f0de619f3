// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// The contract of ``ServerStorage`` for codes that devices make and for sign-in requests, over every
/// backend.
@Suite struct PairingStorageTests {
    private let folder: TemporaryFolder
    private let ada = Sample.account
    private let userCode = SecretHash(of: "code of secret")
    private let secret = SecretHash(of: "secret")

    init() throws { folder = try TemporaryFolder() }

    private func signIn(_ storage: any ServerStorage) throws -> Device {
        try storage.addCode("first")
        return try storage.redeem(
            SecretHash(of: "first"), by: Sample.newDevice("maker"), now: 1_000
        ).device
    }

    private func makeCode(
        _ text: String, _ terms: CredentialTerms = CredentialTerms(), by device: Device,
        _ storage: any ServerStorage
    ) throws {
        let code = NewCode(
            hash: SecretHash(of: text), account: ada.id, expiresMilliseconds: 2_000, terms: terms)
        try storage.addCode(code, now: 1_000, by: .device(device.reference.id))
    }

    @discardableResult
    private func redeem(_ storage: any ServerStorage, now: Int64 = 1_000) throws -> Device {
        try storage.redeem(
            request: secret, by: Sample.newDevice("asker", displayName: "other"), now: now
        ).device
    }

    private func approve(
        _ storage: any ServerStorage, _ terms: CredentialTerms = CredentialTerms(),
        now: Int64 = 1_000, by actor: AuditActor = .operatorLocally
    ) throws {
        try storage.decide(userCode, .approved(ada.id, terms), now: now, by: actor)
    }

    @Test(arguments: Backend.allCases)
    func `a device's code signs in until the end of the device's own rights`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let maker = try signIn(storage)
        let terms = CredentialTerms(
            stores: [Sample.store.identifier], milliseconds: 500, latestMilliseconds: 1_400)
        try makeCode("pair", terms, by: maker, storage)
        let signedIn = try storage.redeem(
            SecretHash(of: "pair"), by: Sample.newDevice("new"), now: 1_100)
        #expect(signedIn.account == ada)
        #expect(signedIn.device.rights.stores == terms.stores)
        #expect(signedIn.device.rights.expiresMilliseconds == 1_400)
        try makeCode("late", terms, by: maker, storage)
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(SecretHash(of: "late"), by: Sample.newDevice("late"), now: 1_400)
        }
        let made = try storage.auditEntries(before: nil, max: 9).last {
            $0.event.action == .codeMade && $0.event.actor.device != nil
        }
        #expect(made?.event.actor == .device(maker.reference.id))
    }

    @Test(arguments: Backend.allCases)
    func `what a device has granted ends with the device`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let maker = try signIn(storage)
        let actor = AuditActor.device(maker.reference.id)
        try makeCode("pair", by: maker, storage)
        try storage.addCode("operator's")
        try storage.addSampleRequest("secret", now: 1_000)
        try approve(storage, by: actor)
        #expect(
            try storage.revoke(maker.reference, now: 1_000, by: .operatorLocally)
                == [maker.reference])
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(SecretHash(of: "pair"), by: Sample.newDevice("x"), now: 1_000)
        }
        #expect(throws: StorageError.codeInvalid) { try redeem(storage) }
        #expect(throws: StorageError.noSuchDevice) { try makeCode("next", by: maker, storage) }
        try storage.addSampleRequest("secret", now: 1_000)
        #expect(throws: StorageError.noSuchDevice) { try approve(storage, by: actor) }
        #expect(try storage.request(userCode: userCode, now: 1_000) != nil)
        _ = try storage.redeem(
            SecretHash(of: "operator's"), by: Sample.newDevice("y"), now: 1_000)
    }

    /// Signs in a device with a code that another one makes.
    private func add(
        _ credential: String, _ terms: CredentialTerms = CredentialTerms(), by maker: Device,
        devicesMax: Int = 9, _ storage: any ServerStorage
    ) throws -> Device {
        try makeCode("code of \(credential)", terms, by: maker, storage)
        return try storage.redeem(
            SecretHash(of: "code of \(credential)"),
            by: Sample.newDevice(credential, devicesMax: devicesMax), now: 1_000
        ).device
    }

    private let confined = CredentialTerms(stores: [Sample.store.identifier])

    @Test(arguments: Backend.allCases)
    func `what a confined device has added ends with it, and what that has added`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let maker = try signIn(storage)
        let app = try add("app", confined, by: maker, storage)
        let own = try add("own", by: maker, storage)
        let child = try add("child", confined, by: app, storage)
        try storage.addSampleRequest("secret", now: 1_000)
        try approve(storage, confined, by: .device(child.reference.id))
        let grandchild = try redeem(storage)
        var push = Sample.push(Sample.record("a", .integer(1), at: 500))
        push.rights = grandchild.rights
        #expect(try storage.commit(push) != nil)
        try makeCode("unused", confined, by: grandchild, storage)
        let all = [maker, app, own, child, grandchild].map(\.reference)
        #expect(try storage.signedIn(among: Set(all)).count == 5)
        let actor = AuditActor.device(maker.reference.id)
        #expect(
            try storage.revoke(app.reference, now: 1_000, by: actor)
                == [app.reference, child.reference, grandchild.reference])
        #expect(try storage.signedIn(among: Set(all)) == [maker.reference, own.reference])
        #expect(Set(try storage.devices(of: ada.id).map(\.reference)) == [all[0], all[2]])
        #expect(try storage.device(credential: SecretHash(of: "asker")) == nil)
        let refusal = PushRefusal.notAllowed(.credentialInvalid)
        #expect(try storage.commit([push], rules: Sample.rules()) == [.failure(refusal)])
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(SecretHash(of: "unused"), by: Sample.newDevice("x"), now: 1_000)
        }
        let revoked = try storage.auditEntries(before: nil, max: 99)
            .filter { $0.event.action == .deviceRevoked }
        #expect(Set(revoked.map(\.event.device)) == Set([all[1], all[3], all[4]].map(\.id)))
        #expect(revoked.allSatisfy { $0.event.actor == actor })
        // What a device that is not confined has added stays.
        #expect(
            try storage.revoke(maker.reference, now: 1_000, by: .operatorLocally)
                == [maker.reference])
        #expect(try storage.devices(of: ada.id).map(\.reference) == [own.reference])
    }

    @Test(arguments: Backend.shared)
    func `each node hears of every device that ended with another, and of no more`(
        backend: Backend
    ) async throws {
        let nodes = try backend.openNodes(2, in: folder)
        let heard = Mutex<Set<StorageNews>>([])
        nodes[0].observe { news in heard.withLock { _ = $0.insert(news) } }
        // Something may have happened before.
        try await until("the beginning") { heard.withLock { $0.contains(.anything) } }
        let maker = try signIn(nodes[1])
        let app = try add("app", confined, by: maker, nodes[1])
        let child = try add("child", confined, by: app, nodes[1])
        let other = try add("other", confined, by: maker, nodes[1])
        let ended = try nodes[1].revoke(app.reference, now: 1_000, by: .operatorLocally)
        #expect(ended == [app.reference, child.reference])
        #expect(try nodes[1].revoke(maker.reference, now: 1_000, by: .operatorLocally).count == 1)
        let expected = Set((ended.union([maker.reference])).map { StorageNews.revoked($0) })
        try await until("the news") { heard.withLock { $0.isSuperset(of: expected) } }
        #expect(!heard.withLock { $0.contains(.revoked(other.reference)) })
    }

    @Test(arguments: Backend.allCases)
    func `what a confined device has added ends when that expires`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let maker = try signIn(storage)
        var terms = confined
        terms.milliseconds = 500
        let app = try add("app", terms, by: maker, storage)
        _ = try add("child", confined, by: app, storage)
        #expect(try storage.removeDevices(expiredBy: 1_499, now: 1_499) == 0)
        #expect(try storage.removeDevices(expiredBy: 1_500, now: 1_500) == 2)
        #expect(try storage.devices(of: ada.id).map(\.reference) == [maker.reference])
    }

    @Test(arguments: Backend.allCases)
    func `confined devices add no more than a share of an account's devices`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let maker = try signIn(storage)
        let app = try add("app", confined, by: maker, devicesMax: 8, storage)
        let child = try add("child", confined, by: app, devicesMax: 8, storage)
        _ = try add("other child", confined, by: app, devicesMax: 8, storage)
        for (number, adder) in [app, child].enumerated() {
            #expect(throws: StorageError.tooManyDevices("that confined ones have added", 2, max: 2))
            {
                try add("more \(number)", confined, by: adder, devicesMax: 8, storage)
            }
        }
        _ = try add("own", by: maker, devicesMax: 8, storage)
        #expect(
            try storage.revoke(child.reference, now: 1_000, by: .operatorLocally)
                == [child.reference])
        _ = try add("next", confined, by: app, devicesMax: 8, storage)
    }

    @Test(arguments: Backend.allCases)
    func `a device has a bound for unused codes, which others and the operator have not`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let maker = try signIn(storage)
        for number in 0..<PairingRule.codesPerDeviceMax {
            try makeCode("\(number)", by: maker, storage)
        }
        #expect(throws: StorageError.tooManyWaiting("unused codes")) {
            try makeCode("more", by: maker, storage)
        }
        try storage.addCode("operator's")
        _ = try storage.redeem(SecretHash(of: "0"), by: Sample.newDevice("new"), now: 1_000)
        try makeCode("more", by: maker, storage)
    }

    @Test(arguments: Backend.allCases)
    func `an approved device signs in once, as what was approved`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let maker = try signIn(storage)
        let asked = CredentialTerms(stores: [Sample.store.identifier], milliseconds: 900)
        try storage.addSampleRequest("secret", terms: asked, now: 1_000)
        #expect(throws: StorageError.signInPending) { try redeem(storage) }
        let shown = try #require(try storage.request(userCode: userCode, now: 1_000))
        #expect(shown.displayName == "phone" && shown.address == "192.0.2.7")
        #expect(shown.terms == asked && shown.secret == secret)
        let granted = CredentialTerms(
            stores: [try StoreIdentifier("a")], milliseconds: 300, latestMilliseconds: 9_000)
        try approve(storage, granted, by: .device(maker.reference.id))
        let device = try redeem(storage, now: 1_100)
        #expect(device.displayName == "phone")
        #expect(device.rights.stores == granted.stores)
        #expect(device.rights.expiresMilliseconds == 1_400)
        #expect(try storage.device(credential: SecretHash(of: "asker")) == device)
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(request: secret, by: Sample.newDevice("again"), now: 1_100)
        }
        let entries = try storage.auditEntries(before: nil, max: 2)
        #expect(entries.map(\.event.action) == [.deviceSignedIn, .signInApproved])
        #expect(entries[1].event.actor == .device(maker.reference.id))
        #expect(entries[1].event.detail == "192.0.2.7" && entries[1].event.account == ada.id)
    }

    @Test(arguments: Backend.allCases)
    func `one decision about a request counts, and the others are too late`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        try storage.addSampleRequest("secret", now: 1_000)
        try storage.decide(userCode, .denied(ada.id), now: 1_000, by: .operatorLocally)
        #expect(throws: StorageError.noSuchRequest) { try approve(storage) }
        #expect(try storage.request(userCode: userCode, now: 1_000) == nil)
        #expect(throws: StorageError.signInDenied) { try redeem(storage) }
        let last = try storage.auditEntries(before: nil, max: 1).first
        #expect(last?.event.action == .signInDenied)
        #expect(last?.event.detail == "192.0.2.7")
    }

    @Test(arguments: Backend.allCases)
    func `a request that expired is neither shown, approved nor redeemed, and is removed`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        try storage.addSampleRequest("secret", now: 1_000)
        #expect(try storage.request(userCode: userCode, now: 1_999) != nil)
        #expect(try storage.request(userCode: userCode, now: 2_000) == nil)
        #expect(throws: StorageError.noSuchRequest) { try approve(storage, now: 2_000) }
        try approve(storage, now: 1_999)
        #expect(throws: StorageError.codeInvalid) { try redeem(storage, now: 2_000) }
        try storage.removeCodes(expiredBy: 2_000)
        #expect(throws: StorageError.codeInvalid) { try redeem(storage, now: 1_999) }
    }

    @Test(arguments: Backend.allCases)
    func `requests are bounded, by address too, and expired ones make room`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let max = PairingRule.requestsPerAddressMax
        for number in 0..<max { try storage.addSampleRequest("\(number)", now: 1_000) }
        #expect(throws: StorageError.tooManyWaiting("devices waiting to sign in")) {
            try storage.addSampleRequest("more", now: 1_000)
        }
        try storage.addSampleRequest("other", address: "192.0.2.8", now: 1_000)
        try storage.addSampleRequest("more", now: 2_000)
    }

    @Test(arguments: Backend.allCases)
    func `an approval outlives an account that has too many devices, and ends with its account`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        _ = try signIn(storage)
        try storage.addSampleRequest("secret", now: 1_000)
        #expect(throws: StorageError.noSuchAccount) {
            try storage.decide(
                userCode, .approved(.random(), CredentialTerms()), now: 1_000,
                by: .operatorLocally)
        }
        try approve(storage)
        let device = Sample.newDevice("asker", devicesMax: 1)
        #expect(throws: StorageError.tooManyDevices("in this account", 1, max: 1)) {
            try storage.redeem(request: secret, by: device, now: 1_000)
        }
        try redeem(storage)
        try storage.addSampleRequest("next", now: 1_000)
        try storage.decide(
            SecretHash(of: "code of next"), .approved(ada.id, CredentialTerms()), now: 1_000,
            by: .operatorLocally)
        #expect(try storage.erase(ada.id, now: 1_000, by: .operatorLocally))
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(
                request: SecretHash(of: "next"), by: Sample.newDevice("x"), now: 1_000)
        }
    }
}

extension ServerStorage {
    /// A request that is good for a second, with the user code `code of SECRET`.
    func addSampleRequest(
        _ secret: String, displayName: String = "phone", address: String = "192.0.2.7",
        terms: CredentialTerms = CredentialTerms(), now: Int64
    ) throws(StorageError) {
        let request = SignInRequest(
            secret: SecretHash(of: secret), userCode: SecretHash(of: "code of \(secret)"),
            displayName: displayName, address: address, terms: terms,
            expiresMilliseconds: now + 1_000)
        try addRequest(request, now: now)
    }
}
