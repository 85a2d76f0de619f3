// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

/// The folder of a person's device: one sign-in for all apps, and their stores.
///
/// `account.json` holds the state, `stores/<folder>/<identifier>.sqlite` the stores.
package struct DeviceHome: Hashable, Sendable {
    package let path: String

    /// The file to watch for sign-ins and sign-outs. It is always replaced, never overwritten.
    package static let accountFileName = "account.json"
    /// The environment variable with the folder's path.
    package static let pathVariable = "UBIQUITY_HOME"

    /// Checks the folder if it exists, and creates nothing: see ``make()``.
    /// - Parameter path: If nil, the environment variable `UBIQUITY_HOME` applies, or otherwise the
    ///   platform's folder for application data.
    /// - Throws: ``HomeError``.
    package init(path: String? = nil) throws(HomeError) {
        guard
            let path = Self.resolve(path, environment: ProcessInfo.processInfo.environment)
        else { throw .noPlace }
        self.path = path
        try check()
    }

    /// Creates the folder, if needed.
    /// - Throws: ``HomeError``.
    package func make() throws(HomeError) {
        do { try PrivateFiles.makeFolder(path) } catch {
            if error == .aboveOfAnotherUser { throw .ofAnotherUser("The folder above \(path)") }
            throw .unwritable("The folder \(path)", cause: "\(error)")
        }
        try check()
    }

    private func check() throws(HomeError) {
        if case .network(let name) = PrivateFiles.fileSystem(of: path) {
            throw .onNetwork(path, type: name)
        }
        do { try PrivateFiles.requireOwnFolder(path) } catch {
            if error.code == ENOENT { return }
            switch error {
            case .writableByOthers: throw .writableByOthers(path)
            case .ofAnotherUser: throw .ofAnotherUser("The folder \(path)")
            default: throw .unwritable("The folder \(path)", cause: "\(error)")
            }
        }
    }

    /// The path of a store's file, which depends on the existing files: see ``StoreFileName``.
    /// - Throws: ``HomeError`` if they cannot be listed.
    package func storePath(
        for identifier: String, folder: String
    ) throws(HomeError) -> String {
        let folder = storesFolder(folder)
        let names = try Self.names(in: folder)
        return folder + "/" + StoreFileName.name(of: identifier, among: names)
    }

    /// Whether there is a file at the path of a store.
    /// - Throws: ``HomeError`` if that is not known.
    package func hasStore(at path: String) throws(HomeError) -> Bool {
        do { return try PrivateFiles.exists(path) } catch {
            throw .unreadable("The file \(path)", cause: "\(error)")
        }
    }

    /// The stores of a folder and their files, sorted by the files' names. An identifier too long for
    /// a file's name is cut, and ends with "…".
    /// - Throws: ``HomeError`` if they cannot be listed.
    package func storeFiles(
        in folder: String
    ) throws(HomeError) -> [(identifier: String, path: String)] {
        let folder = storesFolder(folder)
        return try Self.names(in: folder).sorted().compactMap { name in
            StoreFileName.identifier(of: name).map { ($0, folder + "/" + name) }
        }
    }

    package func storesFolder(_ folder: String) -> String { storesPath + "/" + folder }

    /// - Returns: The state of a device that never signed in if there is no file.
    /// - Throws: ``HomeError``.
    package func load() throws(HomeError) -> DeviceState {
        let file = accountPath
        guard let bytes = try Self.read(file) else { return DeviceState() }
        guard let json = try? JSONSerialization.jsonObject(with: bytes) else {
            throw .damaged(file, cause: "it is not JSON")
        }
        let state: DeviceState
        do {
            state = try DeviceState(fields: PropertyListValue(Self.withoutNulls(json)))
        } catch { throw .damaged(file, cause: "\(error)") }
        guard state.hasFolders else { throw .damaged(file, cause: "a folder has an invalid name") }
        return state
    }

    /// Changes the state while no other process does, and writes it if it changed.
    /// - Returns: The new state.
    /// - Throws: ``HomeError``, and what the body throws; then nothing is changed.
    @discardableResult
    package func update(_ body: (inout DeviceState) throws -> Void) throws -> DeviceState {
        let lock = try locked()
        defer { lock.unlock() }
        let old = try load()
        var state = old
        try body(&state)
        if state != old { try write(state) }
        return state
    }

    /// Removes the folders left by a wipe, this one or an interrupted one.
    /// - Throws: ``HomeError``.
    package func removeAbandonedStores() throws(HomeError) {
        let stores = storesPath
        // A listing first, which is all that most devices ever need.
        guard try !load().abandonedFolders(among: Self.names(in: stores)).isEmpty else { return }
        // An abandoned folder stays abandoned, so the listing remains valid. Even so, nobody can
        // sign in meanwhile.
        let lock = try locked()
        defer { lock.unlock() }
        for folder in try load().abandonedFolders(among: Self.names(in: stores)) {
            let path = "\(stores)/\(folder)"
            do { try FileManager.default.removeItem(atPath: path) } catch {
                if (try? PrivateFiles.exists(path)) == false { continue }
                throw .unwritable("The folder \(path)", cause: error.localizedDescription)
            }
        }
    }

    /// - Returns: None if there is no such folder.
    private static func names(in folder: String) throws(HomeError) -> [String] {
        do {
            guard try PrivateFiles.exists(folder) else { return [] }
            return try FileManager.default.contentsOfDirectory(atPath: folder)
        } catch {
            let cause = (error as? SystemError ?? SystemError(EACCES)).description
            throw .unreadable("The folder \(folder)", cause: cause)
        }
    }

    private var storesPath: String { path + "/stores" }
    private var accountPath: String { path + "/" + Self.accountFileName }

    private func locked() throws(HomeError) -> FileLock {
        try make()
        let file = path + "/account.lock"
        do throws(SystemError) {
            let lock = try FileLock(path: file)
            try lock.lock()
            return lock
        } catch { throw .unwritable("The file \(file)", cause: "\(error)") }
    }

    private func write(_ state: DeviceState) throws(HomeError) {
        do {
            let json = try JSONSerialization.data(
                withJSONObject: state.fields.boxed,
                options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
            try PrivateFiles.replace(accountPath, with: json)
        } catch { throw .unwritable("The file \(accountPath)", cause: "\(error)") }
    }

    /// A null counts as absent.
    private static func withoutNulls(_ json: Any) -> Any {
        switch json {
        case let fields as [String: Any]:
            fields.filter { !($0.value is NSNull) }.mapValues(withoutNulls)
        case let elements as [Any]: elements.filter { !($0 is NSNull) }.map(withoutNulls)
        default: json
        }
    }

    private static func read(_ file: String) throws(HomeError) -> Data? {
        do { return try PrivateFiles.read(file, isOwn: true) } catch {
            if error == .readableByOthers { throw .credentialReadableByOthers(file) }
            if error == .ofAnotherUser { throw .ofAnotherUser("The file \(file)") }
            throw .unreadable("The file \(file)", cause: "\(error)")
        }
    }

    /// - Returns: Nil if no path is known.
    package static func resolve(_ path: String?, environment: [String: String]) -> String? {
        if let path = path ?? environment[nonEmpty: pathVariable] { return path }
        #if canImport(Darwin)
        return FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
            .first.map { $0.appendingPathComponent("Ubiquity").path }
        #else
        return environment.dataHome.map { $0 + "/ubiquity" }
        #endif
    }
}

/// The reason the folder with this device's sign-in cannot be used.
package enum HomeError: Error, Hashable, Sendable {
    /// The system has no folder for application data, and no other path was given.
    case noPlace
    /// Other users of the machine could use the credential.
    case credentialReadableByOthers(_ path: String)
    /// Other users of the machine could put files into the folder.
    case writableByOthers(_ path: String)
    /// Other machines may use the same files, and overwrite what this one has saved.
    case onNetwork(_ path: String, type: String)
    /// The folder, the one above it, or the file with the credential belongs to another user.
    case ofAnotherUser(_ place: String)
    case damaged(_ path: String, cause: String)
    case unreadable(_ place: String, cause: String)
    case unwritable(_ place: String, cause: String)
}

extension HomeError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noPlace:
            "There is no folder for the data of this device: neither UBIQUITY_HOME nor HOME is set "
                + "to an absolute path. Set UBIQUITY_HOME to a folder that only this user may write "
                + "to."
        case .credentialReadableByOthers(let path):
            "Other users can read the file \(path), which contains this device's credential. Make "
                + "it readable only by you (chmod 600), and sign in again if others may have read "
                + "it."
        case .writableByOthers(let path):
            "Other users can put files into the folder \(path), which contains this device's "
                + "credential. Make it writable only by you (chmod go-w)."
        case .onNetwork(let path, let type):
            "The folder \(path) is on a network file system (\(type)), where values that were saved "
                + "can get lost. Choose a folder on a disk of this machine with UBIQUITY_HOME, and "
                + "move what is in this folder there."
        case .ofAnotherUser(let place):
            "\(place) belongs to another user. Run the program as that user, or choose another "
                + "folder with UBIQUITY_HOME."
        case .damaged(let path, let cause):
            "The file \(path) is damaged (\(cause)). Nothing was changed. Move it elsewhere and "
                + "sign in again."
        case .unreadable(let place, let cause):
            "\(place) cannot be read (\(cause)). Make it readable for the user who runs the program, "
                + "or choose another folder with UBIQUITY_HOME."
        case .unwritable(let place, let cause):
            "\(place) cannot be written (\(cause)). Make it writable for the user who runs the "
                + "program, make room on the disk if it is full, or choose another folder with "
                + "UBIQUITY_HOME."
        }
    }
}
