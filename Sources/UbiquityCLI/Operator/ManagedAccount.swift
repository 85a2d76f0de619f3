// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Ubiquity
import UbiquityCore
import UbiquityWire

/// An account, with the requests that its person, with this device's sign-in, and the operator may both
/// send. They throw ``LinkFailure`` if nothing else is said.
struct ManagedAccount {
    enum Manager {
        case person(SignedInAccount, home: DeviceHome)
        case `operator`(OperatorClient)
    }

    let name: String
    private let manager: Manager

    /// The account that this device is signed in to.
    /// - Throws: ``Failure`` if it is not signed in.
    init(own options: HomeOptions) throws {
        let (home, account) = try options.signedIn()
        (name, manager) = (account.accountName, .person(account, home: home))
    }

    init(_ name: String, as client: OperatorClient) {
        (self.name, manager) = (name, .operator(client))
    }

    /// This device's sign-in; nil for the operator.
    var own: SignedInAccount? {
        if case .person(let account, _) = manager { account } else { nil }
    }

    /// The path of the account itself.
    private var path: [String] { own == nil ? ["accounts", name] : ["account"] }
    /// The path of what is in the account, without the last words.
    private var content: [String] { own == nil ? path : [] }

    private func request(
        _ method: ServerRequest.Method, _ path: [String],
        query: [(name: String, value: String)] = [], body: [UInt8]? = nil
    ) throws(LinkFailure) -> ServerRequest {
        switch manager {
        case .person(let account, _):
            try ServerRequest(method, path, query: query, of: account, body: body)
        case .operator(let client): client.request(method, path, query: query, body: body)
        }
    }

    // MARK: The account

    func stores() async throws(LinkFailure) -> [ServerStore] {
        try await request(.get, content + ["stores"]).stores()
    }

    /// Downloads everything in the account.
    ///
    /// A sealed account's file is made on this device, which opens the values.
    /// - Parameter take: Called with each piece, in order. An error that it throws ends the export.
    /// - Throws: ``LinkFailure``, ``Failure``, or the error of `take`; the pieces so far are not a whole file then.
    func export(
        withHistory: Bool, take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
        if case .person(_, let home) = manager {
            let sealing = try await home.sealing()
            if sealing.server.generation > 0 {
                guard !sealing.isLocked, let keyring = sealing.keyring else {
                    throw AccountSealer.locked
                }
                return try await AccountOpening(account: sealing.account, keyring: keyring).export(
                    withHistory: withHistory, take)
            }
        }
        try await request(
            .get, path + ["export"], query: withHistory ? [("with_history", "true")] : []
        ).export(take: take)
    }

    /// Removes the account, with all devices and stores, from the server.
    func erase() async throws(LinkFailure) { try await request(.delete, path).done() }

    // MARK: Devices

    /// The oldest first.
    func devices() async throws -> [ServerDevice] {
        do { return try await request(.get, content + ["devices"]).devices() } catch {
            guard own == nil else { throw error }
            throw Failure(error, about: .account(name))
        }
    }

    /// A new name of this device is stored here too.
    func rename(_ device: DeviceID, to name: String) async throws -> ServerDevice {
        if case .person(let account, let home) = manager {
            return try await home.rename(device: device.description, to: name, account)
        }
        return try await request(
            .patch, content + ["devices", device.description], body: OperatorClient.rename(to: name)
        ).answer(WireDevice.self) { ServerDevice($0) }
    }

    func revoke(_ device: DeviceID) async throws {
        guard device.description != own?.device else {
            throw Failure(
                .usage, "this is the device that you are using; `ubiquity sign-out` signs it out")
        }
        try await request(.delete, content + ["devices", device.description]).done()
    }

    /// Finds a device by its ID, or by its name if that is unique.
    /// - Throws: ``Failure`` if there is none or more than one.
    func find(_ text: String) async throws -> DeviceID {
        if let id = DeviceID(text) { return id }
        let device = try await devices().device(
            text,
            orThrow: Failure(
                .no,
                "there is no device \"\(text)\"; `ubiquity device list` shows the existing ones"))
        guard let id = DeviceID(device.id) else {
            throw Failure(
                .unavailable, "the server gives \"\(text)\" an invalid ID: \(device.id)")
        }
        return id
    }

    // MARK: Devices that wait to sign in

    /// The code in what a person typed or scanned.
    /// - Throws: ``Failure`` for a link to another server.
    func userCode(in code: KeyCode) throws(Failure) -> String {
        if let own, let link = SignInLink(code.front), link.server != own.server {
            throw Failure(
                .badInput,
                "that device wants to sign in at \(link.server), and this one is signed in at "
                    + own.server)
        }
        return code.userCode
    }

    func signInRequest(_ userCode: String) async throws -> ServerSignInRequest {
        do { return try await request(.get, ["sign-in-requests", userCode]).signInRequest() } catch
        {
            guard own != nil, error.code == ProblemCode.notFound.rawValue else { throw error }
            throw Failure(.no, error.detail)
        }
    }

    func approve(_ userCode: String, _ grant: Grant) async throws(LinkFailure) {
        try await request(
            .post, ["sign-in-requests", userCode, "approval"],
            body: ServerSignInRequest.approval(
                grant.stores, grant.seconds, account: own == nil ? name : "")
        ).done()
    }

    func deny(_ userCode: String) async throws(LinkFailure) {
        try await request(.delete, ["sign-in-requests", userCode]).done()
    }
}

extension HomeOptions {
    /// - Throws: ``Failure`` if this device is not signed in.
    func signedIn() throws -> (home: DeviceHome, account: SignedInAccount) {
        let home = try open()
        guard let account = try home.load().signedIn else {
            throw Failure(
                .noPermission,
                "this device is not signed in; run `ubiquity sign-in` first, or, if you run the "
                    + "server, give the account's name")
        }
        return (home, account)
    }
}

/// The rights that an approval grants.
struct Grant: Hashable {
    /// Empty for all.
    var stores: [String]
    /// Nil for until the device is signed out.
    var seconds: Int64?
}

/// The account whose devices a command manages: this device's, or, for the operator, any.
struct DeviceOptions: ParsableArguments {
    @Option(
        "For server operators: the account. Default: the account this device is signed in to.",
        "name", completion: Completions.accounts)
    var account: String?

    @OptionGroup(title: "For server operators") var operation: OperatorOptions
    @OptionGroup var home: HomeOptions

    func validate() throws {
        guard account != nil else {
            return try refuse(
                operation.given,
                "without --account NAME: the command would apply to the account that this device "
                    + "is signed in to. Give the account's name.")
        }
        try refuse(home.given, "with --account; it is only for this device's own sign-in.")
        try operation.requireCredentialForServer()
    }

    /// - Parameter subject: What an operator's refused request was about; nil for a device.
    func withAccount<Result>(
        about subject: ((_ account: String) -> OperatorSubject)? = nil,
        _ body: (ManagedAccount) async throws -> Result
    ) async throws -> Result {
        try await operation.withAccount(
            account, home, about: subject ?? OperatorSubject.device, body)
    }
}
