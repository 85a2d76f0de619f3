// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import NIOCore

/// The reason a server, or a command in its data folder, cannot start, as a sentence for people.
package enum ServerStartError: Error, Equatable, Sendable {
    case portTaken(host: String, port: Int)
    case addressUnusable(host: String, port: Int, reason: String)
    case folderUnusable(path: String, reason: String)
    case folderInUse(path: String)
    /// Another process holds the lock, but no server answers.
    case folderBusy(path: String)
    /// A command for operators needs a running server.
    case noServer(path: String)
    case noServerData(path: String)
    /// - Parameter owner: The user with the permission; nil if unknown.
    case notPermitted(path: String, owner: String?)
    case databaseDamaged(path: String, reason: String)
    case databaseForeign(path: String)
    /// Also of a program from before the first release.
    case databaseNewer(path: String, version: Int, known: Int)
    case diskFull(path: String)
    case fileUnusable(path: String, reason: String)
    case database(DatabaseProblem)
}

extension ServerStartError {
    /// Translates the failure to listen at an address.
    init(listening error: any Error, host: String, port: Int) {
        if let error = error as? ServerStartError {
            self = error
        } else if let error = error as? IOError, error.errnoCode == EADDRINUSE {
            self = .portTaken(host: host, port: port)
        } else {
            let isName = error is SocketAddressError || error is SocketAddressError.UnknownHost
            let reason = isName ? "it is not an IP address" : Self.reason(error)
            self = .addressUnusable(host: host, port: port, reason: reason)
        }
    }

    /// Whom Linux shows for users that a container does not have.
    static let unmappedUser: UInt32 = 65_534
    static let unmappedAdvice =
        "nobody, which stands for any user that this container does not have; on the host, give it to "
        + "the user that the server is there, as with `chown 100000:100000` for root in an "
        + "unprivileged container of LXC"

    /// The same for a socket in the data folder.
    static func socketReason(_ error: any Error) -> String {
        "\(reason(error)); commands on this machine reach the server by a socket, and some file systems, "
            + "such as shares of a host, have none: give a folder on a disk of this machine with --data"
    }

    static func reason(_ error: any Error) -> String {
        (error as? IOError).map { DataFolder.systemReason($0.errnoCode) } ?? "\(error)"
    }
}

extension ServerStartError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .portTaken(let host, let port):
            "port \(port) on \(host) is taken by another program; choose another with --port"
        case .addressUnusable(let host, let port, let reason):
            "the server cannot listen on \(host), port \(port): \(reason)"
        case .folderUnusable(let path, let reason):
            "the data folder \(path) cannot be used: \(reason)"
        case .folderInUse(let path):
            "another server is running on the data folder \(path)"
        case .folderBusy(let path):
            "another program is working on the data folder \(path), and no server answers there; "
                + "try again when it has ended"
        case .noServer(let path):
            "no server is running on the data folder \(path); start it, for example with `ubiquity "
                + "serve --data \(path)`"
        case .noServerData(let path):
            "\(path) has no server data; start a server on it with `ubiquity serve`, or give the "
                + "folder of a server with --data or in UBIQUITY_DATA"
        case .notPermitted(let path, "root"):
            "permission denied: \(path) belongs to root; run the command with `sudo`, or give the "
                + "folder of another server with --data"
        case .notPermitted(let path, "nobody"), .notPermitted(let path, "'#65534'"):
            "permission denied: \(path) belongs to \(Self.unmappedAdvice); or give a folder on the "
                + "container's own disk with --data"
        case .notPermitted(let path, let owner?):
            "permission denied: \(path) belongs to \(owner); run the command with `sudo -u "
                + "\(owner)`, or give the folder of another server with --data"
        case .notPermitted(let path, nil):
            "permission denied: \(path) cannot be read; run the command with `sudo`, or as the "
                + "user that runs the server"
        case .databaseDamaged(let path, let reason):
            "the database \(path) is damaged (\(reason)); nothing was changed. Restore it from a "
                + "backup; the devices bring back what the backup lacks"
        case .databaseForeign(let path):
            "the database \(path) belongs to another program; choose another data folder"
        case .databaseNewer(let path, let version, let known):
            "the database \(path) has format \(version), and this program knows formats up to "
                + "\(known); it was written by a newer version of the program, or by one from before "
                + "the first release: use that version, or choose another data folder"
        case .diskFull(let path):
            "the disk with \(path) is full; make room and start the server again"
        case .fileUnusable(let path, let reason):
            "the file \(path) cannot be used: \(reason)"
        case .database(let problem): problem.description
        }
    }
}
