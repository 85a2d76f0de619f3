// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The programs of the newest PostgreSQL that Debian's packages installed, and the user who runs them.
package struct PostgresPrograms: Sendable {
    /// Debian's folder for the versions it has installed.
    private static let folder = "/usr/lib/postgresql"
    private static let oldestVersion = 15

    package let version: Int

    /// Nil if there is no version that is new enough.
    package static let installed: PostgresPrograms? = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let versions = names.compactMap(Int.init).filter { version in
            version >= oldestVersion
                && FileManager.default.isExecutableFile(atPath: "\(folder)/\(version)/bin/initdb")
        }
        return versions.max().map(PostgresPrograms.init)
    }()

    /// The command line that runs a program, without this process's variables: some of them choose
    /// a server.
    func command(_ program: String, _ arguments: [String]) -> [String] {
        let environment = ["/usr/bin/env", "-i", "LC_ALL=C", "PATH=/usr/bin:/bin"]
        return asUser + environment + ["\(Self.folder)/\(version)/bin/\(program)"] + arguments
    }

    /// PostgreSQL refuses to run as root.
    private var asUser: [String] {
        guard let user = Self.user else { return [] }
        return [
            "/usr/bin/setpriv", "--reuid=\(user.pw_uid)", "--regid=\(user.pw_gid)",
            "--clear-groups", "--",
        ]
    }

    /// Gives a folder to the user who runs the programs.
    func own(_ path: String) throws {
        guard let user = Self.user else { return }
        guard chown(path, user.pw_uid, user.pw_gid) == 0 else {
            throw Trouble.system("the folder \(path) for PostgreSQL")
        }
    }

    /// Nil for the user of this process, who will do if it is not root.
    private static var user: passwd? {
        guard geteuid() == 0 else { return nil }
        return (getpwnam("postgres") ?? getpwnam("nobody"))?.pointee
    }
}
