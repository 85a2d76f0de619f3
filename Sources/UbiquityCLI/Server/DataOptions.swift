// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquityCore

/// The folder with all of a server's data.
struct DataOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The server's data folder.",
            discussion: """
                Default: \(Self.variable); then \(Self.installed), if the service is installed, \
                for all commands but `serve`; then ubiquity-server in XDG_DATA_HOME or \
                ~/.local/share.
                """,
            valueName: "folder"), completion: .directory, transform: notEmpty)
    var data: String?

    var given: [String] { UbiquityCLI.given(("--data", data != nil)) }

    static let variable = "UBIQUITY_DATA"
    /// As in Deployment/ubiquity.service.
    static let installed = "/var/lib/ubiquity"

    /// The folder, to work there from now on: see ``FolderOwner``.
    /// - Parameters:
    ///   - isServer: Whether to serve it. The installed service has options of its own for that.
    ///   - usesFiles: Whether the command also uses files elsewhere.
    /// - Throws: ``Failure``.
    func enter(isServer: Bool = false, usesFiles: Bool = false) throws(Failure) -> String {
        let folder = Self.expanded(data ?? Self.found(isServer: isServer))
        try FolderOwner.become(of: folder, usesFiles: usesFiles)
        return folder
    }

    /// The folder if none is given.
    static func found(isServer: Bool = false) -> String {
        standard(
            ProcessInfo.processInfo.environment,
            isInstalled: !isServer && FileManager.default.fileExists(atPath: installed))
    }

    /// Expands a tilde that the shell left in place.
    static func expanded(_ path: String) -> String {
        URL(fileURLWithPath: (path as NSString).expandingTildeInPath).standardizedFileURL.path
    }

    /// - Parameter isInstalled: Whether there is the folder of an installed service.
    static func standard(_ environment: [String: String], isInstalled: Bool) -> String {
        if let folder = environment[nonEmpty: Self.variable] { return folder }
        if isInstalled { return installed }
        // Without any of them, the folder of the user in the system's list.
        let base = environment.dataHome ?? "~\(NSUserName())/.local/share"
        return base + "/ubiquity-server"
    }
}

/// Determines the user as whom a command works in a data folder.
enum FolderOwner {
    /// As root, permanently becomes the user who owns the folder or a part of its path. That user
    /// could otherwise put links there that lead root to any other file.
    /// - Parameter usesFiles: Whether the command also uses files elsewhere.
    /// - Throws: ``Failure``.
    static func become(of folder: String, usesFiles: Bool = false) throws(Failure) {
        guard geteuid() == 0 else { return }
        let owners = Set(places(on: folder).compactMap(owner)).subtracting([0])
        guard let user = owners.first else { return }
        guard owners.count == 1 else {
            let names = owners.map(Machine.userName).sorted().joined(separator: " and ")
            throw Failure(
                .noPermission,
                "permission denied: folders on the path to \(folder) belong to \(names); choose a "
                    + "folder whose parents belong only to root and to its owner")
        }
        guard isDone(user, folder) else {
            throw Failure(
                .noPermission,
                "permission denied: \(folder) belongs to \(Machine.userName(user)), and this "
                    + "process cannot become that user; run the command with `sudo -u "
                    + "\(Machine.userName(user))`")
        }
        let files: TerminalText =
            usesFiles ? ", who must be able to read or write the other files of this command." : "."
        Output.note("Working as \(Machine.userName(user)), the owner of \(folder)" + files)
    }

    /// The folder, the folders above it, and all links on the path.
    private static func places(on path: String, depth: Int = 0) -> [String] {
        var (place, places) = ("", [String]())
        for name in path.split(separator: "/") {
            let parent = place
            place += "/" + name
            places.append(place)
            let files = FileManager.default
            guard depth < linksMax,
                let target = try? files.destinationOfSymbolicLink(atPath: place)
            else { continue }
            let whole = target.hasPrefix("/") ? target : parent + "/" + target
            let standard = URL(fileURLWithPath: whole).standardizedFileURL.path
            places += Self.places(on: standard, depth: depth + 1)
        }
        return places
    }

    /// The same as the system's.
    private static let linksMax = 40

    /// The owner of the link itself if it is one; nil if there is nothing yet.
    private static func owner(_ path: String) -> UInt32? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.ownerAccountID] as? NSNumber)?.uint32Value
    }

    private static func isDone(_ user: UInt32, _ folder: String) -> Bool {
        let entry = getpwuid(user)
        let group = entry?.pointee.pw_gid ?? user
        let hasGroups =
            entry.map { initgroups($0.pointee.pw_name, numericCast(group)) == 0 }
            ?? (setgroups(0, nil) == 0)
        return hasGroups && setgid(group) == 0 && setuid(user) == 0 && geteuid() == user
            && seteuid(0) != 0
    }
}
