// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore

/// The Unix domain socket of a data folder, where every request is the operator's. It is in a folder of
/// its own that only the owner can enter, so that the owner and root are the only ones who can connect.
///
/// The path leads through a descriptor, because a socket's path may have at most 107 bytes, and so that
/// nobody puts another file there in the meantime.
package final class FolderSocket: Sendable {
    /// Valid as long as this object exists.
    package let path: String
    /// The same path for people.
    package let displayPath: String
    private let descriptor: Int32

    private static let name = "server"

    /// For a server that listens.
    /// - Throws: ``ServerStartError/folderUnusable(path:reason:)`` if the folder of the socket
    ///   cannot be made, or others can enter it.
    init(in folder: DataFolder) throws(ServerStartError) {
        let sockets = folder.socketsPath
        if mkdir(sockets, 0o700) != 0, errno != EEXIST {
            throw .folderUnusable(path: sockets, reason: DataFolder.systemReason())
        }
        descriptor = open(sockets, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        path = "/proc/self/fd/\(descriptor)/\(Self.name)"
        displayPath = "\(sockets)/\(Self.name)"
        guard descriptor >= 0 else {
            throw .folderUnusable(path: sockets, reason: DataFolder.systemReason())
        }
        try Self.requirePrivate(sockets, ownedBy: geteuid())
    }

    /// For a command that connects. Root may do so in any user's folder: no link leads it to the
    /// socket of anybody else.
    /// - Parameter owner: The user whom the socket must belong to; nil for the folder's owner.
    /// - Returns: Nil if there is no socket.
    /// - Throws: ``ServerStartError/folderUnusable(path:reason:)`` if others could have put it there.
    private init?(
        ofServerOn folder: DataFolder, ownedBy owner: UInt32? = nil
    ) throws(ServerStartError) {
        let sockets = folder.socketsPath
        let place = open(sockets, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard place >= 0 else {
            guard [ELOOP, ENOTDIR].contains(errno) else { return nil }
            throw .folderUnusable(path: sockets, reason: "it is not a folder")
        }
        defer { close(place) }
        descriptor = openat(place, Self.name, Self.pathOnly | O_NOFOLLOW | O_CLOEXEC)
        path = "/proc/self/fd/\(descriptor)"
        displayPath = "\(sockets)/\(Self.name)"
        guard descriptor >= 0 else { return nil }
        let files = FileManager.default
        guard let file = try? files.attributesOfItem(atPath: displayPath) else { return nil }
        guard file[.type] as? FileAttributeType == .typeSocket else {
            throw .folderUnusable(path: displayPath, reason: "it is not a socket")
        }
        let expected = owner ?? FileStatus(path: folder.path)?.owner ?? geteuid()
        try Self.requirePrivate(sockets, ownedBy: expected)
        // By the descriptor, because the path may lead elsewhere by now.
        let opened = try? files.attributesOfItem(atPath: "/proc/self/fd/\(place)/.")
        let owners = [opened, file].map { ($0?[.ownerAccountID] as? NSNumber)?.uint32Value }
        guard owners.allSatisfy({ $0 == expected }) else {
            throw .folderUnusable(path: displayPath, reason: "it belongs to another user")
        }
    }

    /// A descriptor that only names a file, be it a socket. (Glibc has it for C programs that ask for
    /// it.)
    private static let pathOnly: Int32 = 0o10_000_000

    private static func requirePrivate(
        _ path: String, ownedBy owner: UInt32
    ) throws(ServerStartError) {
        guard let status = FileStatus(path: path), !status.isOpenToOthers,
            [0, owner].contains(status.owner)
        else {
            throw .folderUnusable(
                path: path,
                reason: "it must belong to the folder's owner, and nobody else may enter it; run "
                    + "`chmod 700 \(path)`")
        }
    }

    deinit { close(descriptor) }

    /// The socket of the server that is running on a folder. Waits as long as another program is at
    /// work there, such as a server that is starting, and for some seconds if none is.
    /// - Parameters:
    ///   - owner: The user whom it must belong to; nil for the folder's owner.
    ///   - onWaiting: Called once, after a second, if a server ever ran there.
    /// - Throws: ``ServerStartError``: ``ServerStartError/noServer(path:)`` if none is running, and
    ///   ``ServerStartError/noServerData(path:)`` if none ever ran there.
    package static func ofServer(
        on dataFolder: String, ownedBy owner: UInt32? = nil, onWaiting: () -> Void = {}
    ) async throws(ServerStartError) -> FolderSocket {
        let folder = DataFolder(path: dataFolder)
        let start = ContinuousClock.now
        return try await FolderLock.attempt(
            folder, onWaiting: { if folder.hasServerData { onWaiting() } }
        ) { () throws(ServerStartError) in
            do throws(ServerStartError) {
                try folder.requireServerData(rootMayVisit: true)
                if let socket = try FolderSocket(ofServerOn: folder, ownedBy: owner),
                    socket.isServed
                {
                    return socket
                }
                guard FolderLock.isHeld(folder) ?? false else { throw .noServer(path: folder.path) }
            } catch {
                let isMissing =
                    [.noServer(path: folder.path), .noServerData(path: folder.path)].contains(error)
                guard isMissing, ContinuousClock.now - start < grace else { throw error }
            }
            return nil
        }
    }

    /// A server that was started a moment ago, as by an installation, may not have the folder yet.
    private static let grace = Duration.seconds(3)

    /// Whether a server is running on the folder.
    static func isServed(_ folder: DataFolder) throws(ServerStartError) -> Bool {
        try FolderSocket(ofServerOn: folder)?.isServed ?? false
    }

    /// Whether something accepts connections there.
    private var isServed: Bool {
        let kind = [SOCK_STREAM, SOCK_NONBLOCK, SOCK_CLOEXEC].reduce(0) { $0 | Int32($1.rawValue) }
        let file = socket(AF_UNIX, kind, 0)
        guard file >= 0 else { return false }
        defer { close(file) }
        guard let address = try? SocketAddress(unixDomainSocketPath: path) else { return false }
        // The queue of a busy server may be full.
        return address.withSockAddr { connect(file, $0, socklen_t($1)) == 0 || errno == EAGAIN }
    }

    func remove() { unlink(path) }

    func closeToOthers() { chmod(path, 0o600) }
}
