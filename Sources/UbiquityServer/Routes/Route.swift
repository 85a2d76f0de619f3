// SPDX-License-Identifier: Apache-2.0

internal import NIOHTTP1
internal import UbiquityCore

/// One operation at one address. All routes go through the ``Gate``: there is no way to make one
/// that does not.
struct Route: Sendable {
    let method: HTTPMethod
    /// See ``PathPattern``.
    let path: String
    let owner: ServerOperation.Owner
    /// Answers on the connection's event loop, without waiting there, or begins a task that answers.
    private let handle: @Sendable (Exchange, Caller, Gate) throws -> Void

    /// Answers for a caller who may do anything of this kind.
    func answer(_ exchange: Exchange, _ gate: Gate) {
        // An operation open to anybody needs no look-up.
        guard owner != .anybody else {
            return exchange.attempt { try handle(exchange, .nobody, gate) }
        }
        exchange.findCaller(by: gate) { caller in
            try gate.check(caller, for: owner)
            try handle(exchange, caller, gate)
        }
    }
}

extension Route {
    /// For operations without a device: anybody's, or the operator's.
    init(
        _ method: HTTPMethod, _ path: String, _ operation: ServerOperation,
        _ answer: @escaping @Sendable (Exchange) async throws -> Answer
    ) {
        precondition(
            [.anybody, .operator].contains(operation.owner), "A device's route needs the device.")
        self.init(method, path, operation) { (exchange: Exchange, _: Caller) in
            try await answer(exchange)
        }
    }

    init(
        _ method: HTTPMethod, _ path: String, _ operation: ServerOperation,
        _ answer: @escaping @Sendable (Exchange, DeviceRights) async throws -> Answer
    ) {
        self.init(method, path, operation) { (exchange: Exchange, rights: DeviceRights) in
            exchange.answer { try await answer(exchange, rights) }
        }
    }

    /// The same, on the connection's event loop.
    init(
        _ method: HTTPMethod, _ path: String, _ operation: ServerOperation,
        _ answer: @escaping @Sendable (Exchange, DeviceRights) throws -> Void
    ) {
        self.init(method: method, path: path, owner: .device) { exchange, caller, gate in
            try gate.check(caller, operation)
            try answer(exchange, try caller.device())
        }
    }

    /// For operations of devices and the operator.
    init(
        _ method: HTTPMethod, _ path: String, _ operation: ServerOperation,
        _ answer: @escaping @Sendable (Exchange, Caller) async throws -> Answer
    ) {
        self.init(method: method, path: path, owner: operation.owner) { exchange, caller, gate in
            try gate.check(caller, operation)
            exchange.answer { try await answer(exchange, caller) }
        }
    }

    /// The address names a device of the same account.
    init(
        _ method: HTTPMethod, _ path: String,
        _ answer:
            @escaping @Sendable (Exchange, DeviceRights, DeviceReference) async throws -> Answer
    ) {
        self.init(method: method, path: path, owner: .device) { exchange, caller, gate in
            let id = try exchange.deviceID()
            try gate.check(caller, .device(id))
            let rights = try caller.device()
            let device = DeviceReference(account: rights.account, id: id)
            exchange.answer { try await answer(exchange, rights, device) }
        }
    }

    /// The address names a store of the same account.
    init(
        _ method: HTTPMethod, _ path: String,
        _ answer:
            @escaping @Sendable (Exchange, DeviceRights, StoreReference) async throws -> Answer
    ) {
        self.init(method, path) {
            (exchange: Exchange, rights: DeviceRights, store: StoreReference) in
            exchange.answer { try await answer(exchange, rights, store) }
        }
    }

    /// The same, on the connection's event loop.
    init(
        _ method: HTTPMethod, _ path: String,
        _ answer: @escaping @Sendable (Exchange, DeviceRights, StoreReference) throws -> Void
    ) {
        self.init(method: method, path: path, owner: .device) { exchange, caller, gate in
            let identifier = try exchange.storeIdentifier()
            try gate.check(caller, .store(identifier))
            let rights = try caller.device()
            let store = StoreReference(account: rights.account, identifier: identifier)
            try answer(exchange, rights, store)
        }
    }
}

extension Caller {
    /// - Throws: ``AccessRefusal`` if it is not a device.
    fileprivate func device() throws(AccessRefusal) -> DeviceRights {
        guard case .device(let rights) = self else { throw .notForOperator }
        return rights
    }
}
