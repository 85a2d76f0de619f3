// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore

/// A Unix domain socket of a data folder. It is in a folder of its own that only the owner can
/// enter, so that the owner and root are the only ones who can connect.
///
/// The folder is held open, and the path leads through its descriptor, because a socket's path may
/// have at most 107 bytes.
final class FolderSocket: Sendable {
    enum Name: String {
        /// The socket of a running server.
        case server
        /// The socket of a command that serves itself, while no server is running.
        case command
    }

    /// Valid as long as this object exists.
    let path: String
    /// The same path for people.
    let displayPath: String
    private let descriptor: Int32

    /// - Throws: ``ServerStartError/folderUnusable(path:reason:)`` if the folder of the sockets
    ///   cannot be made, or others can enter it.
    init(_ name: Name, in folder: DataFolder) throws(ServerStartError) {
        let sockets = folder.socketsPath
        if mkdir(sockets, 0o700) != 0, errno != EEXIST {
            throw .folderUnusable(path: sockets, reason: DataFolder.systemReason())
        }
        if let status = FileStatus(path: sockets), status.isForeign || status.isOpenToOthers {
            throw .folderUnusable(
                path: sockets,
                reason: "it must belong to you, and nobody else may enter it; run `chmod 700 "
                    + "\(sockets)`")
        }
        descriptor = open(sockets, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        path = "/proc/self/fd/\(descriptor)/\(name.rawValue)"
        displayPath = (sockets as NSString).appendingPathComponent(name.rawValue)
        guard descriptor >= 0 else {
            throw .folderUnusable(path: sockets, reason: DataFolder.systemReason())
        }
    }

    deinit { close(descriptor) }

    /// Whether something accepts connections there.
    var isServed: Bool {
        let kind = [SOCK_STREAM, SOCK_NONBLOCK, SOCK_CLOEXEC].reduce(0) { $0 | Int32($1.rawValue) }
        let file = socket(AF_UNIX, kind, 0)
        guard file >= 0, let address = try? SocketAddress(unixDomainSocketPath: path) else {
            return false
        }
        defer { close(file) }
        // The queue of a busy server may be full.
        return address.withSockAddr { connect(file, $0, socklen_t($1)) == 0 || errno == EAGAIN }
    }

    func remove() { unlink(path) }

    func closeToOthers() { chmod(path, 0o600) }
}
