// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The folder with all of a server's data, and the names of its files.
struct DataFolder: Sendable {
    let path: String

    init(path: String) {
        self.path = (path as NSString).expandingTildeInPath
    }

    var databasePath: String { file("ubiquity.sqlite") }
    var operatorCredentialPath: String { file("operator-credential") }
    var lockPath: String { file("lock") }
    var reservePath: String { file("reserve") }
    var socketsPath: String { file("sockets") }
    /// See ``HouseIdentity``.
    var housePath: String { file("house") }

    private func file(_ name: String) -> String { (path as NSString).appendingPathComponent(name) }

    var hasServerData: Bool { FileManager.default.fileExists(atPath: databasePath) }

    /// - Parameters:
    ///   - rights: The required access to the database, as for `access`.
    ///   - rootMayVisit: Whether root may be in another user's folder, because it opens no file but the lock.
    /// - Throws: ``ServerStartError/noServerData(path:)``,
    ///   ``ServerStartError/notPermitted(path:owner:)`` if access is denied, or errors of
    ///   ``requireOwn(orAnyUsers:)``.
    func requireServerData(
        _ rights: Int32 = R_OK | W_OK, rootMayVisit: Bool = false
    ) throws(ServerStartError) {
        try Self.requireAccess(to: databasePath, F_OK, in: path)
        guard hasServerData else { throw .noServerData(path: path) }
        try requireOwn(orAnyUsers: rootMayVisit && geteuid() == 0)
        try Self.requireAccess(to: databasePath, rights, in: path)
    }

    /// - Parameter folder: Named in the error, with its owner.
    static func requireAccess(
        to path: String, _ rights: Int32, in folder: String
    ) throws(ServerStartError) {
        guard access(path, rights) != 0, errno == EACCES || errno == EPERM else { return }
        let attributes = try? FileManager.default.attributesOfItem(atPath: folder)
        if (attributes?[.ownerAccountID] as? NSNumber)?.uint32Value == geteuid() {
            throw .folderUnusable(
                path: folder,
                reason: "it is yours, and its permissions keep you out; run `chmod -R u+rwX "
                    + "\(folder)`")
        }
        throw .notPermitted(path: folder, owner: attributes?[.ownerAccountName] as? String)
    }

    /// Makes the folder, accessible to its owner only, unless it exists.
    func make() throws(ServerStartError) {
        if case .network(let name) = fileSystem {
            throw .folderUnusable(
                path: path,
                reason:
                    "it is on a network file system (\(name)), where writes that were confirmed "
                    + "can get lost; choose a folder on a disk of this machine, or keep the data in "
                    + "PostgreSQL (--database)")
        }
        if let code = Self.makeFolder(path) {
            try Self.requireAccess(to: path, F_OK, in: path)
            throw .folderUnusable(path: path, reason: Self.systemReason(code))
        }
        try Self.requireAccess(to: path, R_OK | W_OK | X_OK, in: path)
        guard access(path, R_OK | W_OK | X_OK) == 0 else {
            throw .folderUnusable(path: path, reason: "it is not writable")
        }
        try requireOwn()
    }

    /// Makes a folder and any missing folders above it, for the owner only. They are there after a power
    /// failure, too.
    /// - Returns: The value of `errno` if that failed, and nil for a folder that exists.
    static func makeFolder(_ path: String) -> Int32? {
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) {
            return isFolder.boolValue ? nil : ENOTDIR
        }
        let parent = (path as NSString).deletingLastPathComponent
        if !parent.isEmpty, parent != path, let code = makeFolder(parent) { return code }
        guard mkdir(path, 0o700) == 0 else { return errno }
        let code = AtomicFile.flushFolder(of: path)
        if code != nil { rmdir(path) }
        return code
    }

    /// The kind of the file system; for a folder that does not exist yet, of the folder above it.
    var fileSystem: FileSystemKind {
        let mounts = FileManager.default.contents(atPath: "/proc/self/mountinfo") ?? Data()
        var path = URL(fileURLWithPath: path)
        while !FileManager.default.fileExists(atPath: path.path), path.path != "/" {
            path.deleteLastPathComponent()
        }
        return FileSystemKind(
            of: path.resolvingSymlinksInPath().path, mounts: String(decoding: mounts, as: UTF8.self)
        )
    }

    /// Checks that only this user and root can put files or links into the folder: anyone who can
    /// decides what is done there, and to which files.
    /// - Throws: ``ServerStartError/notPermitted(path:owner:)`` if the folder belongs neither to
    ///   this process's user nor to root, ``ServerStartError/folderUnusable(path:reason:)`` if
    ///   others may write to it.
    private func requireOwn(orAnyUsers isVisit: Bool = false) throws(ServerStartError) {
        guard let status = FileStatus(path: path) else { return }
        guard isVisit || !status.isForeign else {
            throw .notPermitted(path: path, owner: status.ownerName)
        }
        guard status.isWritableByOthers else { return }
        // Whoever is given a volume cannot change it.
        let advice =
            status.owner == geteuid()
            ? "run `chmod go-w \(path)`"
            : "give a folder inside it, which the server makes for itself: --data \(path)/ubiquity"
        throw .folderUnusable(path: path, reason: "other users can write to it; \(advice)")
    }

    /// Makes the database file, empty and for its owner only, unless it exists. SQLite's files
    /// beside it inherit its permissions. An existing file is not opened (``ServerDatabase``).
    func makeDatabaseFile() throws(ServerStartError) {
        let file = open(databasePath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 || errno == EEXIST else {
            throw .fileUnusable(path: databasePath, reason: Self.systemReason())
        }
        if file >= 0 { close(file) }
        try PrivateFile.requirePrivate(databasePath)
    }

    /// Removes leftovers of an interrupted restore or start. Call this with the ``FolderLock``
    /// held.
    func removeDrafts() {
        for path in [databasePath, operatorCredentialPath] { AtomicFile.removeLeftovers(of: path) }
    }

    /// The system's message for an error, the last one by default.
    static func systemReason(_ code: Int32 = errno) -> String { String(cString: strerror(code)) }
}
