// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

/// Every caller against every operation, by a table that is written out.
struct AccessRuleTests {
    private static let notes = try! StoreIdentifier("notes")
    private static let other = try! StoreIdentifier("other")
    private static let own = DeviceID(rawValue: 1)
    private static let sibling = DeviceID(rawValue: 2)
    private static let now: Int64 = 1_000

    private static func credential(
        _ stores: Set<StoreIdentifier>? = nil, expiresMilliseconds: Int64? = nil
    ) -> Caller {
        let name = DeviceReference(account: AccountID(rawValue: 1), id: own)
        return .device(
            DeviceRights(reference: name, stores: stores, expiresMilliseconds: expiresMilliseconds))
    }

    enum Who: CaseIterable {
        case nobody, stranger, `operator`, device, lasting, expired, confined, elsewhere

        var caller: Caller {
            switch self {
            case .nobody: .nobody
            case .stranger: .stranger
            case .operator: .operator
            case .device: credential()
            case .lasting: credential(expiresMilliseconds: now + 1)
            case .expired: credential(expiresMilliseconds: now)
            case .confined: credential([notes])
            case .elsewhere: credential([other])
            }
        }
    }

    private static let anybodys: [ServerOperation] = [
        .readHealth, .readPage, .readConfig, .signIn, .requestSignIn,
    ]
    private static let operators: [ServerOperation] = [
        .listAccounts, .createAccount, .renameAccount, .readLimitsOfAccount, .limitAccount,
        .eraseAccount, .makeCode,
        .listDevicesOfAccount, .renameDeviceOfAccount, .revokeDeviceOfAccount, .listApps,
        .registerApp, .removeApp, .readAudit, .exportAccount, .listStoresOfAccount, .readMetrics,
    ]
    private static let itself: [ServerOperation] = [
        .readOwnAccount, .listStores, .readDevice(own), .renameDevice(own), .revokeDevice(own),
        .makeOwnCode(nil),
    ]
    private static let shared: [ServerOperation] = [
        .readSignInRequest, .denySignIn, .approveSignIn(nil),
    ]
    private static let approvals: [ServerOperation] = [.approveSignIn([notes])]
    private static let approvalsOfMore: [ServerOperation] = [.approveSignIn([notes, other])]
    private static let accounts: [ServerOperation] = [
        .eraseOwnAccount, .exportOwnAccount, .listDevices,
    ]
    private static let siblings: [ServerOperation] = [
        .readDevice(sibling), .renameDevice(sibling), .revokeDevice(sibling),
    ]
    private static let stores: [ServerOperation] = [
        .readStore(notes), .readHistory(notes), .pushToStore(notes), .readDeliveries(notes),
    ]
    private static let codes: [ServerOperation] = [.makeOwnCode([notes])]
    private static let codesForMore: [ServerOperation] = [.makeOwnCode([notes, other])]
    private static let all =
        anybodys + operators + itself + accounts + siblings + stores + codes + codesForMore
        + shared + approvals + approvalsOfMore

    /// The refusal that a caller gets for an operation; nil if it is allowed.
    private static func expectation(_ who: Who, _ operation: ServerOperation) -> AccessRefusal? {
        if anybodys.contains(operation) { return nil }
        let isOperators = operators.contains(operation)
        let isShared = (shared + approvals + approvalsOfMore).contains(operation)
        switch who {
        case .nobody: return .credentialMissing
        case .stranger: return .credentialInvalid
        case .expired: return .credentialExpired
        case .operator: return isOperators || isShared ? nil : .notForOperator
        case .device, .lasting: return isOperators ? .onlyForOperator : nil
        case .confined, .elsewhere:
            if isOperators { return .onlyForOperator }
            if (itself + shared).contains(operation) { return nil }
            if siblings.contains(operation) { return .hidden }
            let allowed = stores + codes + approvals
            return allowed.contains(operation) && who == .confined ? nil : .confined
        }
    }

    private func refusal(
        _ caller: Caller, _ operation: ServerOperation, apps: AppRule = .open
    ) -> AccessRefusal? {
        do {
            try AccessRule(apps: apps, now: Self.now).check(caller, operation)
            return nil
        } catch { return error }
    }

    @Test(arguments: Who.allCases)
    func `a caller may do what the table says, and nothing else`(who: Who) {
        for operation in Self.all {
            #expect(
                refusal(who.caller, operation) == Self.expectation(who, operation),
                "\(who) \(operation)")
        }
    }

    @Test func `the table has every operation once`() {
        #expect(Set(Self.all).count == Self.all.count)
        for operation in Self.all { #expect(Self.group(of: operation) == operation.owner) }
    }

    /// Fails to compile for an operation that is in no group.
    private static func group(of operation: ServerOperation) -> ServerOperation.Owner {
        switch operation {
        case .readHealth, .readPage, .readConfig, .signIn, .requestSignIn: .anybody
        case .listStoresOfAccount, .readMetrics,
            .listAccounts, .createAccount, .renameAccount, .readLimitsOfAccount, .limitAccount,
            .eraseAccount, .makeCode,
            .listDevicesOfAccount, .renameDeviceOfAccount, .revokeDeviceOfAccount, .listApps,
            .registerApp, .removeApp, .readAudit, .exportAccount:
            .operator
        case .readOwnAccount, .listStores, .readDevice, .renameDevice, .revokeDevice,
            .eraseOwnAccount, .exportOwnAccount, .listDevices, .readStore, .readHistory,
            .pushToStore, .readDeliveries, .makeOwnCode:
            .device
        case .readSignInRequest, .approveSignIn, .denySignIn: .deviceOrOperator
        }
    }

    @Test(arguments: Who.allCases)
    func `what can be refused before the address is read is refused in the same way`(who: Who) {
        let rule = AccessRule(now: Self.now)
        for operation in Self.all {
            let early: AccessRefusal?
            do {
                try rule.check(who.caller, for: operation.owner)
                early = nil
            } catch { early = error }
            if let early { #expect(refusal(who.caller, operation) == early) }
            let late: Set<AccessRefusal?> = [nil, .hidden, .confined, .appNotRegistered]
            #expect(early != nil || late.contains(refusal(who.caller, operation)))
        }
    }

    @Test func `an app that is not registered is kept from its store only`() {
        for operation in Self.all {
            let isStore = Self.stores.contains(operation)
            let expected = Self.expectation(.device, operation)
            #expect(
                refusal(Self.credential(), operation, apps: .registered([Self.notes])) == expected)
            #expect(
                refusal(Self.credential(), operation, apps: .registered([Self.other]))
                    == (isStore ? .appNotRegistered : expected))
        }
    }

    @Test func `a confined device does not learn which apps are registered`() {
        for apps in [AppRule.open, .registered([]), .registered([Self.notes])] {
            for operation in Self.stores {
                #expect(refusal(Self.credential([Self.other]), operation, apps: apps) == .confined)
            }
        }
    }
}
