// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer

extension DeviceFacts {
    /// Collects all facts. Changes nothing.
    /// - Parameters:
    ///   - home: The folder given to the command.
    ///   - store: The requested store; nil for that of the environment and all existing ones.
    static func gather(home: String?, configuration: UbiquityConfiguration, isLocal: Bool) async
        -> DeviceFacts
    {
        var facts = DeviceFacts(home: Self.home(home))
        facts.identifier = Self.identifier(configuration)
        guard case .folder(let path, _, _) = facts.home else { return facts }
        facts.fileSystem = PrivateFiles.fileSystem(of: path)
        facts.freeBytes = Machine.freeBytes(at: path)
        facts.watchFailure = Machine.watchFailure(of: path)
        do {
            let home = try DeviceHome(path: path)
            let state = try home.load()
            if let account = state.signedIn {
                facts.signIn = .account(
                    name: account.accountName, server: account.server, device: account.deviceName)
                if !isLocal { facts.contact = await Contact(account) }
            }
            facts.stores = try Self.stores(home, state, facts.identifier)
            if let account = state.signedIn, facts.contact?.server == .success {
                facts.sealing = (try? await home.sealing()).map(Sealing.init)
                for index in facts.stores.indices {
                    await facts.stores[index].ask(account, state.keyring?.current ?? 0)
                }
            }
        } catch { facts.signIn = .unreadable(Failure.sentence(of: error)) }
        return facts
    }

    private static func home(_ path: String?) -> Home {
        let environment = ProcessInfo.processInfo.environment
        guard let path = DeviceHome.resolve(path, environment: environment) else {
            return .none(HomeError.noPlace.description)
        }
        guard let entry = DataFolderInspection.Entry(path: path) else {
            if access(path, F_OK) != 0, errno == EACCES {
                return .none(
                    "Permission denied: the folder \(path) cannot be read; run the command as the "
                        + "user that runs the programs, or choose another folder with "
                        + "UBIQUITY_HOME.")
            }
            return .missing(path: path, canBeMade: canBeMade(path))
        }
        return .folder(
            path: path, mode: entry.mode,
            isOwn: entry.owner == geteuid() && access(path, R_OK | W_OK | X_OK) == 0)
    }

    /// Whether the nearest folder above that exists can be written.
    private static func canBeMade(_ path: String) -> Bool {
        let parent = PrivateFiles.parent(of: path) ?? "."
        return access(parent, F_OK) == 0
            ? access(parent, W_OK | X_OK) == 0 : parent != "." && canBeMade(parent)
    }

    private static func identifier(_ configuration: UbiquityConfiguration) -> Identifier {
        do {
            guard let name = try configuration.resolvedIdentifier() else { return .none }
            let variable = UbiquityConfiguration.identifierVariable
            let environment = ProcessInfo.processInfo.environment[variable] ?? ""
            let source =
                configuration.identifier != nil
                ? "--store" : environment.isEmpty ? "an entitlements file" : variable
            return .named(name, source: source)
        } catch { return .invalid(Failure.sentence(of: error)) }
    }

    private static func stores(
        _ home: DeviceHome, _ state: DeviceState, _ identifier: Identifier
    ) throws(HomeError) -> [Store] {
        if case .named(let name, _) = identifier {
            let path = try home.storePath(for: name, folder: state.folder)
            return try home.hasStore(at: path) ? [store(name, at: path)] : [Store(identifier: name)]
        }
        return try home.storeFiles(in: state.folder).map { store($0.identifier, at: $0.path) }
    }

    private static func store(_ identifier: String, at path: String) -> Store {
        var store = Store(identifier: identifier)
        do throws(LocalStorageError) {
            let inspection = try StoreInspection(path: path)
            store.content = .success(
                Store.Content(
                    usage: inspection.usage, limits: inspection.meta.limits,
                    pendingCount: inspection.pendingCount,
                    unsendable: UnsendableTransaction(
                        of: inspection.entries.compactMap(\.pending),
                        bytesMax: inspection.meta.limits.pushBytesMax),
                    refusedKeys: inspection.refusedKeys, setAside: inspection.meta.setAside, link: inspection.meta.link,
                    cursor: inspection.meta.cursor))
        } catch { store.content = .failure(LocalFailure(sentence: error.description)) }
        store.lease = lease(ProcessLease.path(ofStore: path))
        return store
    }

    private static func lease(_ path: String) -> Store.Lease {
        switch Result(catching: { () throws(SystemError) in try PrivateFiles.exists(path) }) {
        case .success(true): break
        case .success(false): return .free
        case .failure: return .unknown
        }
        if let holder = LockHolder(of: path) {
            return .held(by: holder.description, isStopped: holder.isStopped)
        }
        guard let lease = try? ProcessLease(path: path) else { return .unknown }
        defer { lease.close() }
        return lease.tryAcquire() ? .free : .held(by: nil)
    }
}

extension DeviceFacts.Store {
    /// Asks the server for changes, like the program that holds the connection.
    /// - Parameter generation: That of the account's key that this device has.
    fileprivate mutating func ask(_ account: SignedInAccount, _ generation: UInt32) async {
        guard let store = try? StoreIdentifier(identifier) else { return }
        let cursor =
            if case .success(let content)? = content { content.cursor } else { Cursor?.none }
        do throws(LinkFailure) {
            _ = try await HTTPTransport(store, of: account, generation: generation)
                .pull(since: cursor)
        } catch {
            if error.kind == .refused { refusal = error.detail }
        }
    }
}

extension DeviceFacts.Sealing {
    init(_ progress: SealingProgress) {
        switch progress.step {
        case .restored: self = .restored
        case .getKey: self = .locked
        case .propose, .mark, .seal, .done:
            self = progress.server.generation > 0 ? .withKey : .none
        }
    }
}

extension DeviceFacts.Contact {
    /// Checks the connection to the server step by step, as far as it works.
    init(_ account: SignedInAccount) async {
        let url = URLComponents(string: account.server)
        isEncrypted = url?.scheme?.lowercased() == "https"
        host = url?.host ?? account.server
        port = url?.port ?? (isEncrypted ? 443 : 80)
        proxy = HTTPTransport.proxy(of: account)
        if proxy == nil {
            // An IPv6 address is in brackets.
            let name = host.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
            let contact = Reachability.contact(name, port: port)
            (self.name, connection) = (contact.name, contact.connection)
            guard connection == .success else { return }
        }
        let sent = Date().milliseconds
        do throws(LinkFailure) {
            let config = try await AccountClient.config(of: account)
            server = .success
            let received = Date().milliseconds
            clock = ((sent + received) / 2 - config.serverMilliseconds, (received - sent) / 2)
        } catch {
            server = .failure(error.detail)
            return
        }
        do throws(LinkFailure) {
            try await AccountClient.checkCredential(of: account)
            credential = .valid
        } catch { credential = error.kind == .unauthorized ? .refused : .unknown(error.detail) }
    }
}
