// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import UbiquityCore
import UbiquityServer

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

    /// The folder, for a command that opens files there.
    /// - Parameter isServer: Whether to serve it. The installed service has options of its own for
    ///   that.
    /// - Throws: ``Failure`` for root in a folder of another user.
    func entered(isServer: Bool = false) throws(Failure) -> String {
        let folder = folder(isServer: isServer)
        try FolderOwner.check(folder)
        return folder
    }

    func folder(isServer: Bool = false) -> String {
        Self.expanded(data ?? Self.found(isServer: isServer))
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

/// Keeps root out of other users' folders: they could put links there that lead to any other file.
enum FolderOwner {
    /// - Throws: ``Failure`` for root, if the folder or a part of its path belongs to another user.
    static func check(_ folder: String) throws(Failure) {
        guard geteuid() == 0,
            let owner = places(on: folder).compactMap(owner).last(where: { $0 != 0 })
        else { return }
        let user = Machine.userName(owner)
        if user == "nobody" {
            throw Failure(
                .noPermission, "\(ServerStartError.notPermitted(path: folder, owner: user))")
        }
        throw Failure(
            .noPermission,
            "permission denied: \(folder), or a folder on its path, belongs to \(user); run the "
                + "command with `sudo -u \(user)`, or choose a folder that only root can change")
    }

    /// The user whose folder root visits to connect to the server there; nil for anybody but root.
    /// - Throws: ``Failure`` if several users could have led root there.
    static func visited(_ folder: String) throws(Failure) -> UInt32? {
        guard geteuid() == 0 else { return nil }
        let owners = Set(places(on: folder).compactMap(owner)).subtracting([0])
        guard owners.count <= 1 else {
            let names = owners.map(Machine.userName).sorted().joined(separator: " and ")
            throw Failure(
                .noPermission,
                "permission denied: folders or links on the path to \(folder) belong to \(names); "
                    + "give the path without links")
        }
        return owners.first ?? 0
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
}
