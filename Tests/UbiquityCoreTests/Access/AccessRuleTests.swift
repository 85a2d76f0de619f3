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

    /// For every device.
    private static let always: [ServerOperation] = [
        .itself, .device(own), .makeOwnCode(nil), .signInRequest, .approveSignIn(nil),
    ]
    /// For every device that reaches the store.
    private static let ofNotes: [ServerOperation] = [
        .store(notes), .makeOwnCode([notes]), .approveSignIn([notes]),
    ]
    /// For devices that are not confined.
    private static let unconfined: [ServerOperation] = [
        .wholeAccount, .device(sibling), .makeOwnCode([notes, other]),
        .approveSignIn([notes, other]),
    ]
    private static let all: [ServerOperation] =
        always + ofNotes + unconfined + [.anybodys, .operators]

    /// The refusal that a caller gets for an operation; nil if it is allowed.
    private static func expectation(_ who: Who, _ operation: ServerOperation) -> AccessRefusal? {
        if operation == .anybodys { return nil }
        switch who {
        case .nobody: return .credentialMissing
        case .stranger: return .credentialInvalid
        case .expired: return .credentialExpired
        case .operator:
            switch operation {
            case .operators, .signInRequest, .approveSignIn: return nil
            default: return .notForOperator
            }
        case .device, .lasting: return operation == .operators ? .onlyForOperator : nil
        case .confined, .elsewhere:
            if operation == .operators { return .onlyForOperator }
            if operation == .device(sibling) { return .hidden }
            if ofNotes.contains(operation) { return who == .confined ? nil : .confined }
            return always.contains(operation) ? nil : .confined
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

    @Test func `the table has every kind of operation`() {
        #expect(Set(Self.all.map(Self.kind)) == Set(1...9))
    }

    /// Fails to compile for a new kind.
    private static func kind(of operation: ServerOperation) -> Int {
        switch operation {
        case .anybodys: 1
        case .operators: 2
        case .itself: 3
        case .wholeAccount: 4
        case .device: 5
        case .store: 6
        case .makeOwnCode: 7
        case .signInRequest: 8
        case .approveSignIn: 9
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
            let expected = Self.expectation(.device, operation)
            #expect(
                refusal(Self.credential(), operation, apps: .registered([Self.notes])) == expected)
            #expect(
                refusal(Self.credential(), operation, apps: .registered([Self.other]))
                    == (operation == .store(Self.notes) ? .appNotRegistered : expected))
        }
    }

    @Test func `a confined device does not learn which apps are registered`() {
        for apps in [AppRule.open, .registered([]), .registered([Self.notes])] {
            let refusal = refusal(
                Self.credential([Self.other]), .store(Self.notes), apps: apps)
            #expect(refusal == .confined)
        }
    }
}
