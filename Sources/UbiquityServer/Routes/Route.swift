// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import UbiquityCore

/// One operation at one address. All routes go through the ``Gate``: there is no way to make one
/// that does not.
struct Route: Sendable {
    let method: HTTPRequest.Method
    /// The path, with the names of its parameters in braces.
    let path: String
    let owner: ServerOperation.Owner
    private let open: Open

    private enum Open: Sendable {
        case inTask(@Sendable (Request, ServerContext, Caller, Gate) async throws -> Response)
        case onLoop(StoreAnswer)
    }

    /// Whether it is answered on the connection's event loop.
    var isOnLoop: Bool { if case .onLoop = open { true } else { false } }

    /// Answers in a task.
    func answer(
        _ request: Request, _ context: ServerContext, _ gate: Gate
    ) async throws -> Response {
        guard case .inTask(let open) = open else { throw Problem.notFound }
        let caller = try await gate.caller(request.bearer, for: owner)
        return try await open(request, context, caller, gate)
    }

    /// Answers on the connection's event loop, without waiting there.
    /// - Parameter storeText: The store's identifier as in the path.
    func answer(_ exchange: Exchange, storeText: Substring, _ gate: Gate) {
        guard case .onLoop(let answer) = open else { return exchange.refuse(Problem.notFound) }
        exchange.findCaller(by: gate) { caller in
            try gate.check(caller, for: owner)
            let identifier = try StoreIdentifier(inPath: storeText)
            try gate.check(caller, .store(identifier))
            let rights = try caller.device()
            let store = StoreReference(account: rights.account, identifier: identifier)
            try answer(exchange, rights, store)
        }
    }
}

extension Route {
    typealias Answer = @Sendable (Request, ServerContext) async throws -> Response
    typealias DeviceAnswer =
        @Sendable (Request, ServerContext, DeviceRights) async throws -> Response
    typealias CallerAnswer =
        @Sendable (Request, ServerContext, Caller) async throws -> Response
    /// The address names a device of the same account.
    typealias NamedDeviceAnswer =
        @Sendable (Request, ServerContext, DeviceRights, DeviceReference) async throws -> Response
    /// The address names a store of the same account.
    typealias NamedStoreAnswer =
        @Sendable (Request, ServerContext, DeviceRights, StoreReference) async throws -> Response
    /// The same, on the connection's event loop.
    typealias StoreAnswer =
        @Sendable (Exchange, DeviceRights, StoreReference) throws -> Void

    /// For operations without a device: anybody's, or the operator's.
    init(
        _ method: HTTPRequest.Method, _ path: String, _ operation: ServerOperation,
        _ answer: @escaping Answer
    ) {
        precondition(
            [.anybody, .operator].contains(operation.owner), "A device's route needs the device.")
        self.init(method, path, operation.owner) {
            request, context, caller, gate in
            try gate.check(caller, operation)
            return try await answer(request, context)
        }
    }

    init(
        _ method: HTTPRequest.Method, _ path: String, _ operation: ServerOperation,
        _ answer: @escaping DeviceAnswer
    ) {
        self.init(method, path, .device) { request, context, caller, gate in
            try gate.check(caller, operation)
            return try await answer(request, context, try caller.device())
        }
    }

    /// For operations of devices and the operator.
    init(
        _ method: HTTPRequest.Method, _ path: String, _ operation: ServerOperation,
        _ answer: @escaping CallerAnswer
    ) {
        self.init(method, path, operation.owner) { request, context, caller, gate in
            try gate.check(caller, operation)
            return try await answer(request, context, caller)
        }
    }

    init(_ method: HTTPRequest.Method, _ path: String, _ answer: @escaping NamedDeviceAnswer) {
        self.init(method, path, .device) { request, context, caller, gate in
            let id = try context.parameters.deviceID()
            try gate.check(caller, .device(id))
            let rights = try caller.device()
            let device = DeviceReference(account: rights.account, id: id)
            return try await answer(request, context, rights, device)
        }
    }

    init(_ method: HTTPRequest.Method, _ path: String, _ answer: @escaping NamedStoreAnswer) {
        self.init(method, path, .device) { request, context, caller, gate in
            let identifier = try context.parameters.storeIdentifier()
            try gate.check(caller, .store(identifier))
            let rights = try caller.device()
            let store = StoreReference(account: rights.account, identifier: identifier)
            return try await answer(request, context, rights, store)
        }
    }

    init(_ method: HTTPRequest.Method, _ path: String, _ answer: @escaping StoreAnswer) {
        self.init(method: method, path: path, owner: .device, open: .onLoop(answer))
    }

    private init(
        _ method: HTTPRequest.Method, _ path: String, _ owner: ServerOperation.Owner,
        _ open: @escaping @Sendable (Request, ServerContext, Caller, Gate) async throws -> Response
    ) {
        self.init(method: method, path: path, owner: owner, open: .inTask(open))
    }
}

extension Caller {
    /// - Throws: ``AccessRefusal`` if it is not a device.
    fileprivate func device() throws(AccessRefusal) -> DeviceRights {
        guard case .device(let rights) = self else { throw .notForOperator }
        return rights
    }
}

extension Parameters {
    /// - Throws: ``Problem``.
    func storeIdentifier() throws(Problem) -> StoreIdentifier {
        guard let text = get("identifier") else { throw .notFound }
        return try StoreIdentifier(inPath: text[...])
    }

    /// - Throws: ``StorageError/noSuchAccount``, also for text that cannot be a name.
    func accountName() throws -> AccountName {
        guard let name = AccountName(try text("name")) else { throw StorageError.noSuchAccount }
        return name
    }

    /// - Throws: ``StorageError/noSuchDevice``, also for text that cannot be an ID.
    func deviceID() throws -> DeviceID {
        guard let id = DeviceID(try text("id")) else { throw StorageError.noSuchDevice }
        return id
    }
}

extension StoreIdentifier {
    /// - Throws: ``Problem``.
    fileprivate init(inPath text: Substring) throws(Problem) {
        let decoded =
            text.utf8.contains(UInt8(ascii: "%")) ? text.removingPercentEncoding : String(text)
        guard let decoded else { throw .notFound }
        do { self = try StoreIdentifier(decoded) } catch { throw .malformed("\(error).") }
    }
}
