// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// The contract of ``ServerStorage`` for accounts, devices, apps and the audit log, over every
/// backend.
@Suite struct AccountStorageTests {
    private let folder: TemporaryFolder
    private let ada = Sample.account
    private let identity = Identity(issuer: "https://issuer.example", subject: "42")

    init() throws { folder = try TemporaryFolder() }

    private func signIn(
        _ storage: any ServerStorage, terms: CredentialTerms = CredentialTerms(),
        credential: String = "credential"
    ) throws -> Device {
        let code = "code of \(credential)"
        try storage.addCode(code, terms: terms)
        return try storage.redeem(
            SecretHash(of: code), by: Sample.newDevice(credential), now: 1_000
        ).device
    }

    private func trim(_ storage: any ServerStorage, to max: Int) throws {
        try storage.removeAuditEntries(storage.auditSurplus(by: AuditRule(entriesMax: max)))
    }

    private func actions(_ storage: any ServerStorage) throws -> [AuditAction] {
        try storage.auditEntries(before: nil, max: 99).reversed().map(\.event.action)
    }

    @Test(arguments: Backend.allCases)
    func `a code's terms are its device's rights`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let stores: Set = [try StoreIdentifier("notes"), try StoreIdentifier("a.b-c_D")]
        let terms = CredentialTerms(stores: stores, milliseconds: 500)
        let device = try signIn(storage, terms: terms)
        #expect(device.rights.stores == stores)
        #expect(device.rights.expiresMilliseconds == 1_500)
        #expect(try storage.device(credential: SecretHash(of: "credential")) == device)
        #expect(try storage.devices(of: ada.id) == [device])
    }

    @Test(arguments: Backend.allCases)
    func `a device is renamed, and an unknown one is not`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let device = try signIn(storage).reference
        #expect(try storage.rename(device, displayName: "desk", now: 1, by: .device(device.id)))
        #expect(try storage.devices(of: ada.id).map(\.displayName) == ["desk"])
        let unknown = DeviceReference(account: AccountID(rawValue: 1), id: device.id)
        #expect(try !storage.rename(unknown, displayName: "x", now: 1, by: .operatorLocally))
        #expect(try storage.devices(of: ada.id).map(\.displayName) == ["desk"])
    }

    @Test(arguments: Backend.allCases)
    func `an expired credential is still known, makes room, and is removed in the end`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        _ = try signIn(storage, terms: CredentialTerms(milliseconds: 10))
        #expect(try storage.device(credential: SecretHash(of: "credential")) != nil)
        try storage.addCode("next")
        let next = Sample.newDevice("c2", devicesMax: 1)
        #expect(throws: StorageError.tooManyDevices("in this account", 1, max: 1)) {
            try storage.redeem(SecretHash(of: "next"), by: next, now: 1_009)
        }
        let second = try storage.redeem(SecretHash(of: "next"), by: next, now: 1_010).device
        #expect(try storage.removeDevices(expiredBy: 1_009, now: 2_000) == 0)
        #expect(try storage.removeDevices(expiredBy: 1_010, now: 2_000) == 1)
        #expect(try storage.devices(of: ada.id) == [second])
        #expect(try storage.device(credential: SecretHash(of: "credential")) == nil)
    }

    @Test(arguments: Backend.allCases)
    func `a device that was signed out meanwhile does nothing`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let (owner, lost) = (try signIn(storage), try signIn(storage, credential: "lost"))
        let actor = AuditActor.device(lost.reference.id)
        try storage.addSampleRequest("secret", now: 1_000)
        #expect(
            try storage.revoke(lost.reference, now: 1_000, by: .operatorLocally)
                == [lost.reference])
        let entries = try storage.auditEntries(before: nil, max: 99)
        #expect(throws: StorageError.noSuchDevice) {
            try storage.revoke(owner.reference, now: 1_000, by: actor)
        }
        #expect(throws: StorageError.noSuchDevice) {
            try storage.rename(owner.reference, displayName: "mine", now: 1_000, by: actor)
        }
        #expect(throws: StorageError.noSuchDevice) {
            try storage.decide(
                SecretHash(of: "code of secret"), .denied(ada.id), now: 1_000, by: actor)
        }
        #expect(throws: StorageError.noSuchDevice) {
            try storage.erase(ada.id, now: 1_000, by: actor)
        }
        #expect(try storage.devices(of: ada.id) == [owner])
        #expect(try storage.auditEntries(before: nil, max: 99) == entries)
        // It may sign itself out, and erase its account, while it is signed in.
        #expect(try storage.erase(ada.id, now: 1_000, by: .device(owner.reference.id)))
    }

    @Test(arguments: Backend.allCases)
    func `a clock that is wrong for a while removes no code by itself`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let maker = try signIn(storage)
        try storage.addCode("long", expiresMilliseconds: 90_000)
        try storage.addSampleRequest("secret", now: 1_000)
        try storage.addCode("next", now: 99_000)
        let code = NewCode(
            hash: SecretHash(of: "pair"), account: ada.id, expiresMilliseconds: 99_999)
        try storage.addCode(code, now: 99_000, by: .device(maker.reference.id))
        try storage.addSampleRequest("other", now: 99_000)
        #expect(try storage.request(userCode: SecretHash(of: "code of secret"), now: 1_500) != nil)
        _ = try storage.redeem(SecretHash(of: "long"), by: Sample.newDevice("c"), now: 1_500)
    }

    @Test(arguments: Backend.allCases)
    func `an account is renamed to a name that nobody has`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let bob = Account(id: .random(), name: AccountName("bob")!, createdMilliseconds: 2)
        try storage.createAccount(bob, accountsMax: 9, by: .operatorLocally)
        #expect(throws: StorageError.accountExists) {
            try storage.rename(ada.id, to: bob.name, now: 3, by: .operatorLocally)
        }
        let name = try #require(AccountName("Ada Lovelace"))
        try storage.rename(ada.id, to: name, now: 3, by: .operatorLocally)
        try storage.rename(ada.id, to: name, now: 4, by: .operatorLocally)
        #expect(try storage.account(named: name)?.id == ada.id)
        #expect(try storage.account(named: ada.name) == nil)
        #expect(try actions(storage) == [.accountCreated, .accountCreated, .accountRenamed])
        #expect(throws: StorageError.noSuchAccount) {
            try storage.rename(.random(), to: ada.name, now: 3, by: .operatorLocally)
        }
    }

    @Test(arguments: Backend.allCases)
    func `an account has limits of its own, until they are the server's again`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let device = try signIn(storage)
        var limits = AccountLimits()
        try limits.set(.keys, to: 4_096)
        try limits.set(.historyDays, to: 0)
        try storage.limit(ada.id, to: limits, now: 3, by: .operatorLocally)
        try storage.limit(ada.id, to: limits, now: 4, by: .operatorLocally)
        #expect(try storage.account(ada.id)?.limits == limits)
        #expect(try storage.accounts().map(\.limits) == [limits])
        let rights = try storage.device(credential: SecretHash(of: "credential"))?.rights
        #expect(rights?.reference == device.reference)
        #expect(rights?.limits == limits)
        #expect(try actions(storage).filter { $0 == .limitChanged }.count == 1)
        try storage.limit(ada.id, to: AccountLimits(), now: 5, by: .operatorLocally)
        #expect(try storage.account(ada.id)?.limits == AccountLimits())
        #expect(throws: StorageError.noSuchAccount) {
            try storage.limit(.random(), to: limits, now: 6, by: .operatorLocally)
        }
    }

    @Test(arguments: Backend.allCases)
    func `a push is held to its account's own limits`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        var rights = try signIn(storage).rights
        try rights.limits.set(.keys, to: 1)
        let results = try ["a", "b"].map { key in
            var push = Sample.push(Sample.record(key, .integer(1), at: 500))
            push.rights = rights
            return try #require(try storage.commit(push)).results
        }
        guard case .committed = results[0][0], case .refused(let refusal) = results[1][0] else {
            Issue.record("\(results)")
            return
        }
        #expect(refusal.code == "quota-keys")
    }

    @Test(arguments: Backend.allCases)
    func `accounts are listed a page at a time`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        for name in ["bob", "Zoë", "\u{E9}mile"] {
            let account = Account(id: .random(), name: AccountName(name)!, createdMilliseconds: 2)
            try storage.createAccount(account, accountsMax: 9, by: .operatorLocally)
        }
        let all = try storage.accounts()
        #expect(all.map(\.name.string) == ["Zoë", "ada", "bob", "\u{E9}mile"])
        let first = try storage.accounts(after: nil, max: 3)
        #expect(first == Array(all.prefix(3)))
        #expect(try storage.accounts(after: first.last?.name, max: 3) == [all[3]])
    }

    @Test(arguments: Backend.allCases)
    func `an erased account has nothing left, and others have all`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let bob = try storage.signIn(
            identity, preferredName: AccountName("bob"), accountsMax: 9,
            by: Sample.newDevice("bob's"), now: 5)
        let bobs = StoreReference(account: bob.account.id, identifier: Sample.store.identifier)
        try storage.commit(Sample.push(Sample.record("b", .integer(1), at: 500), to: bobs))
        let device = try signIn(storage)
        try storage.addCode("unused")
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        #expect(try storage.erase(ada.id, now: 9, by: .device(device.reference.id)))
        try storage.scrub(pacedAt: nil)
        #expect(try !storage.erase(ada.id, now: 9, by: .operatorLocally))
        #expect(try storage.accounts() == [bob.account])
        #expect(try storage.device(credential: SecretHash(of: "credential")) == nil)
        #expect(try storage.devices(of: ada.id).isEmpty)
        #expect(try storage.devices(of: bob.account.id) == [bob.device])
        #expect(try storage.stores(of: ada.id).isEmpty)
        #expect(try storage.keys(since: nil) == [])
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(SecretHash(of: "unused"), by: Sample.newDevice("x"), now: 1_000)
        }
        #expect(throws: StorageError.noSuchAccount) { try storage.addCode("new") }
        #expect(try storage.stores(of: bob.account.id).map(\.usage.keys) == [1])
        let last = try #require(storage.auditEntries(before: nil, max: 1).first)
        #expect(
            last.event.action == .accountErased && last.event.account == ada.id && last.time == 9)
        #expect(last.event.actor == .device(device.reference.id))
        let again = try storage.signIn(
            identity, preferredName: nil, accountsMax: 1, by: Sample.newDevice("bob's second"),
            now: 10)
        #expect(again.account == bob.account)
    }

    @Test(arguments: Backend.allCases)
    func `a push to an erased account makes nothing, whatever the writer remembers`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        #expect(try storage.erase(ada.id, now: 9, by: .operatorLocally))
        let late = Sample.push(Sample.record("a", .integer(2), at: 600))
        #expect(try storage.commit([late], rules: Sample.rules()) == [.failure(.noSuchAccount)])
        #expect(try storage.stores(of: ada.id).isEmpty)
        #expect(try storage.keys(since: nil) == [])
    }

    @Test(arguments: Backend.allCases)
    func `an identity creates its account once, and signs in its devices`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        var new = Sample.newDevice("one")
        new.expiresMilliseconds = 7_000
        let first = try storage.signIn(
            identity, preferredName: AccountName("bob"), accountsMax: 9, by: new, now: 5)
        #expect(first.account.name.string == "bob")
        #expect(first.device.rights.expiresMilliseconds == 7_000)
        let second = try storage.signIn(
            identity, preferredName: AccountName("robert"), accountsMax: 2,
            by: Sample.newDevice("two"), now: 6)
        #expect(second.account == first.account)
        #expect(second.device.rights.expiresMilliseconds == nil)
        #expect(try storage.devices(of: first.account.id) == [first.device, second.device])
    }

    @Test(arguments: Backend.allCases)
    func `texts that differ after a zero byte are two, and are read as they were written`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let subjects = ["user-17", "user-17\0x", "user-17\0", "\0"]
        let accounts = try subjects.map { subject in
            try storage.signIn(
                Identity(issuer: "i\0\(subject)", subject: subject), preferredName: nil,
                accountsMax: 9, by: Sample.newDevice("of \(subject)", displayName: "a\0\(subject)"),
                now: 5
            ).account.id
        }
        #expect(Set(accounts).count == subjects.count)
        for (account, subject) in zip(accounts, subjects) {
            let devices = try storage.devices(of: account)
            #expect(devices.map(\.displayName) == ["a\0\(subject)"])
            #expect(
                try storage.rename(
                    devices[0].reference, displayName: "b\0c", now: 6, by: .operatorLocally))
            #expect(try storage.devices(of: account).map(\.displayName) == ["b\0c"])
            let again = try storage.signIn(
                Identity(issuer: "i\0\(subject)", subject: subject), preferredName: nil,
                accountsMax: 5, by: Sample.newDevice("next of \(subject)"), now: 7)
            #expect(again.account.id == account)
        }
    }

    @Test(arguments: Backend.allCases)
    func `an identity whose preferred name is taken gets an account of its own`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        for (issuer, subject, name) in [("i", "1", ada.name), ("i", "2", nil), ("j", "1", nil)] {
            let made = try storage.signIn(
                Identity(issuer: issuer, subject: subject), preferredName: name, accountsMax: 9,
                by: Sample.newDevice(issuer + subject), now: 5
            ).account
            #expect(made.id != ada.id)
            #expect(made.name.string == made.id.string)
        }
        #expect(try storage.accounts().count == 4)
    }

    @Test(arguments: Backend.allCases)
    func `an identity that exceeds a limit creates no account`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        #expect(throws: StorageError.tooMany("accounts")) {
            try storage.signIn(
                identity, preferredName: nil, accountsMax: 1, by: Sample.newDevice(), now: 5)
        }
        #expect(throws: StorageError.tooManyDevices("in this account", 0, max: 0)) {
            try storage.signIn(
                identity, preferredName: nil, accountsMax: 9,
                by: Sample.newDevice(devicesMax: 0), now: 5)
        }
        #expect(try storage.accounts() == [ada])
        #expect(try actions(storage) == [.accountCreated])
    }

    @Test(arguments: Backend.allCases)
    func `apps are registered once, counted, and removed`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        func app(_ name: String) throws -> RegisteredApp {
            RegisteredApp(identifier: try StoreIdentifier(name), registered: 7)
        }
        let (one, two) = (try app("one"), try app("two"))
        #expect(try storage.register(two, appsMax: 2, by: .operatorLocally))
        #expect(try storage.register(one, appsMax: 2, by: .operatorLocally))
        #expect(try !storage.register(one, appsMax: 2, by: .operatorLocally))
        #expect(throws: StorageError.tooMany("registered apps")) {
            try storage.register(app("three"), appsMax: 2, by: .operatorLocally)
        }
        #expect(try storage.apps() == [one, two])
        #expect(try storage.removeApp(one.identifier, now: 8, by: .operatorByCredential))
        #expect(try !storage.removeApp(one.identifier, now: 8, by: .operatorByCredential))
        #expect(try storage.apps() == [two])
        #expect(
            try actions(storage) == [.accountCreated, .appRegistered, .appRemoved])
    }

    @Test(arguments: Backend.allCases)
    func `an app keeps its name until it gets another one, and its stores are listed with it`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        func register(_ name: String?) throws -> Bool {
            let app = RegisteredApp(
                identifier: Sample.store.identifier, name: name, registered: 7)
            return try storage.register(app, appsMax: 1, by: .operatorLocally)
        }
        func listed() throws -> [String?] {
            try storage.stores(of: Sample.account.id).map(\.appName)
        }
        try storage.commit(Sample.push(Sample.record("a", .string("1"), at: 1_000)))
        #expect(try listed() == [nil])
        #expect(try register(nil))
        #expect(try listed() == [nil])
        for name in ["Notes", "Nötes"] {
            #expect(try register(name))
            #expect(try !register(name))
            #expect(try !register(nil))
            #expect(try storage.apps().map(\.name) == [name])
            #expect(try listed() == [name])
        }
        #expect(try storage.removeApp(Sample.store.identifier, now: 8, by: .operatorLocally))
        #expect(try listed() == [nil])
    }

    @Test(arguments: Backend.allCases)
    func `the audit log tells who did what, the newest first, and keeps so many`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let device = try signIn(storage).reference
        #expect(try storage.rename(device, displayName: "x", now: 7, by: .operatorByCredential))
        #expect(try storage.revoke(device, now: 8, by: .device(device.id)) == [device])
        #expect(try storage.revoke(device, now: 9, by: .operatorLocally).isEmpty)
        #expect(
            try actions(storage)
                == [.accountCreated, .codeMade, .deviceSignedIn, .deviceRenamed, .deviceRevoked])
        let entries = try storage.auditEntries(before: nil, max: 2)
        #expect(entries.map(\.event.actor) == [.device(device.id), .operatorByCredential])
        #expect(entries.map(\.time) == [8, 7])
        #expect(entries.allSatisfy { $0.event.account == ada.id && $0.event.device == device.id })
        let older = try storage.auditEntries(before: entries[1].number, max: 9)
        #expect(older.map(\.event.action) == [.deviceSignedIn, .codeMade, .accountCreated])
        try trim(storage, to: 2)
        #expect(try actions(storage) == [.deviceRenamed, .deviceRevoked])
        try trim(storage, to: 2)
        _ = try signIn(storage, credential: "c2")
        #expect(
            try actions(storage) == [.deviceRenamed, .deviceRevoked, .codeMade, .deviceSignedIn])
    }

    @Test(arguments: Backend.allCases)
    func `a device that renames itself without end has one entry an hour, and others keep theirs`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let device = try signIn(storage).reference
        for time in 0..<500 {
            _ = try storage.rename(
                device, displayName: "\(time)", now: 20_000 * Int64(time), by: .device(device.id))
        }
        let entries = try storage.auditEntries(before: nil, max: 99)
        #expect(
            entries.map(\.event.action)
                == [
                    .deviceRenamed, .deviceRenamed, .deviceRenamed, .deviceSignedIn, .codeMade,
                    .accountCreated,
                ])
        #expect(entries.map(\.count) == [140, 180, 180, 1, 1, 1])
        #expect(entries[0].time == 7_200_000 && entries[0].last == 9_980_000)
    }

    @Test(arguments: Backend.allCases)
    func `failed sign-ins, exports and changed limits are in the audit log`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let failed = AuditEvent(.signInFailed, by: .stranger, detail: "192.0.2.1")
        let exported = AuditEvent(.accountExported, of: ada.id, by: .operatorLocally)
        try storage.record([
            AuditEntry(failed, at: 100, last: 200, count: 7), AuditEntry(exported, at: 150),
            AuditEntry(failed, at: 1_000), AuditEntry(failed, at: 60_100),
        ])
        try storage.recordChanges(ofLimits: ["keysMax": "1024", "valueBytesMax": "9"], now: 1)
        try storage.recordChanges(ofLimits: ["keysMax": "1024", "valueBytesMax": "9"], now: 2)
        try storage.recordChanges(ofLimits: ["keysMax": "12", "valueBytesMax": "9"], now: 3)
        let changed = AuditEvent(
            .limitChanged, by: .operatorLocally, detail: "keysMax from 1024 to 12")
        let entries = try storage.auditEntries(before: nil, max: 4)
        #expect(entries.map(\.event) == [changed, failed, exported, failed])
        #expect(entries.map(\.count) == [1, 1, 1, 8])
        #expect(entries.map(\.time) == [3, 60_100, 150, 100])
        #expect(entries[3].last == 1_000)
    }
}
