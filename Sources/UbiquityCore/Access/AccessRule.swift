// SPDX-License-Identifier: Apache-2.0

/// Decides what each caller may do on a server. Nothing else decides that.
package struct AccessRule: Hashable, Sendable {
    package var apps: AppRule
    /// The server's milliseconds since 1970.
    package var now: Int64

    package init(apps: AppRule = .open, now: Int64) {
        self.apps = apps
        self.now = now
    }

    /// - Throws: ``AccessRefusal`` if the caller may not do this.
    package func check(
        _ caller: Caller, _ operation: ServerOperation
    ) throws(AccessRefusal) {
        try check(caller, for: operation.owner)
        guard case .device(let rights) = caller else { return }
        try check(rights, operation)
    }

    /// The part of ``check(_:_:)`` that does not depend on what is asked for. Call it before
    /// parsing the address, so that a caller without rights learns nothing about it.
    /// - Throws: ``AccessRefusal`` if the caller may do nothing of this kind.
    package func check(
        _ caller: Caller, for owner: ServerOperation.Owner
    ) throws(AccessRefusal) {
        guard owner != .anybody else { return }
        switch caller {
        case .nobody: throw .credentialMissing
        case .stranger: throw .credentialInvalid
        case .operator: if owner == .device { throw .notForOperator }
        case .device(let rights):
            guard !rights.hasExpired(at: now) else { throw .credentialExpired }
            if owner == .operator { throw .onlyForOperator }
        }
    }

    private func check(
        _ rights: DeviceRights, _ operation: ServerOperation
    ) throws(AccessRefusal) {
        switch operation {
        case .store(let store):
            guard rights.reaches(store) else { throw .confined }
            guard apps.admits(store) else { throw .appNotRegistered }
        case .device(let device):
            if rights.isConfined, device != rights.reference.id { throw .hidden }
        case .wholeAccount: if rights.isConfined { throw .confined }
        case .makeOwnCode(let stores), .approveSignIn(let stores):
            guard stores?.allSatisfy(rights.reaches) ?? true else { throw .confined }
        case .anybodys, .operators, .itself, .signInRequest: break
        }
    }
}

/// The apps for which a server keeps stores.
package enum AppRule: Hashable, Sendable {
    /// All apps.
    case open
    /// Only these apps.
    case registered(Set<StoreIdentifier>)

    package func admits(_ app: StoreIdentifier) -> Bool {
        switch self {
        case .open: true
        case .registered(let apps): apps.contains(app)
        }
    }
}

/// The author of a request, according to its credential.
package enum Caller: Hashable, Sendable {
    /// No credential.
    case nobody
    /// A credential that was never issued, or was revoked.
    case stranger
    case `operator`
    case device(DeviceRights)
}

/// The reason a request is not allowed.
package enum AccessRefusal: Error, Hashable, Sendable, CaseIterable {
    case credentialMissing
    /// Unknown or revoked; the caller is not told which.
    case credentialInvalid
    case credentialExpired
    /// Only the operator may do this.
    case onlyForOperator
    /// Only a device may do this.
    case notForOperator
    /// The credential is confined to other stores of the same account.
    case confined
    /// The server must not reveal whether the thing exists.
    case hidden
    /// The server only accepts registered apps, and this store's app is not one of them.
    case appNotRegistered
}

/// The kind of a route's work, as far as rights depend on it.
///
/// A device's operations always concern its own account: no address names another one.
package enum ServerOperation: Hashable, Sendable {
    /// Needs no credential.
    case anybodys
    /// Concerns the server or any account.
    case operators

    // MARK: A device's

    /// Concerns the device itself, or only the part of its account that it reaches.
    case itself
    /// Concerns the whole account, of which a confined device has only a part.
    case wholeAccount
    /// Reads, renames or revokes a device.
    case device(DeviceID)
    /// Reads a store, its history or which devices have its changes, or pushes to it.
    case store(StoreIdentifier)
    /// For a device with these stores; nil for those that the device itself has.
    case makeOwnCode(Set<StoreIdentifier>?)

    // MARK: A device's or the operator's

    /// Reads or denies a request to be signed in.
    case signInRequest
    /// Approves a sign-in for these stores; nil as for a code.
    case approveSignIn(Set<StoreIdentifier>?)

    /// The kind of caller that an operation is meant for.
    package enum Owner: Hashable, Sendable {
        case anybody
        case `operator`
        case device
        case deviceOrOperator
    }

    package var owner: Owner {
        switch self {
        case .anybodys: .anybody
        case .operators: .operator
        case .itself, .wholeAccount, .device, .store, .makeOwnCode: .device
        case .signInRequest, .approveSignIn: .deviceOrOperator
        }
    }
}

/// An account and a device ID, which is unique within its account only.
package struct DeviceReference: Hashable, Sendable {
    package var account: AccountID
    package var id: DeviceID

    package init(account: AccountID, id: DeviceID) {
        self.account = account
        self.id = id
    }
}

/// The rights that a device's credential grants.
package struct DeviceRights: Hashable, Sendable {
    package var reference: DeviceReference
    /// The stores that it may use; nil means all of its account. Of the rest of its account, a
    /// confined device can only reach itself.
    package var stores: Set<StoreIdentifier>?
    /// When the credential expires, in milliseconds since 1970 by the server's clock; nil means
    /// never.
    package var expiresMilliseconds: Int64?
    /// Its account's.
    package var limits: AccountLimits
    /// The generation of the key that its account is sealed with; 0 if it is not.
    package var generation: UInt32
    /// The bytes of that key's check while a reset of its account is announced, which a device with the
    /// key withdraws; nil otherwise.
    package var announcedCheck: [UInt8]?

    package init(
        reference: DeviceReference, stores: Set<StoreIdentifier>? = nil,
        expiresMilliseconds: Int64? = nil, limits: AccountLimits = AccountLimits(),
        generation: UInt32 = 0, announcedCheck: [UInt8]? = nil
    ) {
        self.reference = reference
        self.stores = stores
        self.expiresMilliseconds = expiresMilliseconds
        self.limits = limits
        self.generation = generation
        self.announcedCheck = announcedCheck
    }

    package var account: AccountID { reference.account }
    package var isConfined: Bool { stores != nil }
    package var share: ShareHolder {
        isConfined ? .confinedDevices(account) : .device(reference)
    }

    package func reaches(_ store: StoreIdentifier) -> Bool { stores?.contains(store) ?? true }

    package func hasExpired(at now: Int64) -> Bool {
        expiresMilliseconds.map { $0 <= now } ?? false
    }
}

/// The holder of a share of what an account may use. A confined device may add others, which are
/// confined too, so all of an account have one together.
package enum ShareHolder: Hashable, Sendable {
    case device(DeviceReference)
    case confinedDevices(AccountID)
}
