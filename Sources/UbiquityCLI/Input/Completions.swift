// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer

/// The words that a shell offers for the one being typed. They come from this machine's disk alone:
/// no server is asked, and nothing is offered if reading fails.
enum Completions {
    static let stores = kind { CompletionPlace($0)?.stores }
    static let keys = kind { CompletionPlace($0)?.keys }
    /// The names that `ubiquity device list` or `ubiquity delivery` last showed.
    static let devices = kind { SeenNames(in: CompletionPlace($0)?.folder).names }
    /// The names that `ubiquity account list` last showed, and those created since.
    static let accounts = kind { _ in
        SeenNames(in: SeenAccounts.folder(ProcessInfo.processInfo.environment)).names
    }

    private static let namesMax = 1_000

    private static func kind(
        _ names: @escaping @Sendable (_ words: [String]) -> [String]?
    ) -> CompletionKind {
        .custom { words, _, prefix in
            offered(names(words) ?? [], prefix, isZsh: CompletionShell.requesting == .zsh)
        }
    }

    /// - Returns: At most ``namesMax``, sorted, without names that a shell could not give back.
    static func offered(_ names: [String], _ prefix: String, isZsh: Bool) -> [String] {
        let fitting = Set(names).filter { name in
            name.hasPrefix(prefix) && !name.unicodeScalars.contains(where: \.isControl)
        }
        return fitting.sorted().prefix(namesMax).map { name in
            // After a colon, zsh shows a description.
            isZsh ? name.replacing(":", with: "\\:") : name
        }
    }
}

/// The folder and the store of a line that is being typed.
struct CompletionPlace {
    private let home: DeviceHome
    private let state: DeviceState
    private let store: String?

    /// Fails if there is no such folder, and makes none.
    init?(_ words: [String]) {
        let environment = ProcessInfo.processInfo.environment
        let given = Self.value(of: "--home", in: words)
        guard let path = DeviceHome.resolve(given, environment: environment),
            FileManager.default.fileExists(atPath: path),
            let home = try? DeviceHome(path: path), let state = try? home.load()
        else { return nil }
        (self.home, self.state) = (home, state)
        store =
            Self.value(of: "--store", in: words)
            ?? environment[nonEmpty: UbiquityConfiguration.identifierVariable]
    }

    /// The last one given, in either form.
    static func value(of option: String, in words: [String]) -> String? {
        for (index, word) in words.enumerated().reversed() {
            if word.hasPrefix(option + "=") { return String(word.dropFirst(option.count + 1)) }
            if word == option, index + 1 < words.count { return words[index + 1] }
        }
        return nil
    }

    /// The folder of the account's stores.
    var folder: String { home.storesFolder(state.folder) }

    var stores: [String] {
        let files = (try? home.storeFiles(in: state.folder)) ?? []
        return files.map(\.identifier).filter { !$0.hasSuffix("…") }
    }

    var keys: [String] {
        guard let store, let path = try? home.storePath(for: store, folder: state.folder),
            let entries = try? StoreInspection(path: path).entries
        else { return [] }
        return entries.filter { entry in
            (entry.pending?.record.content ?? entry.confirmed?.content)?.value != nil
        }.map(\.key.string)
    }
}

/// The names that a command has shown, for completions. Devices' lie beside the account's stores and go
/// with them, accounts' in the operator's cache.
struct SeenNames: Codable {
    private(set) var names: [String] = []

    fileprivate static let fileName = "names.json"
    private static let namesMax = 1_000

    /// Reads the names. Without a file that can be read, there are none.
    init(in folder: String?) {
        guard let folder, let bytes = try? PrivateFiles.read(folder + "/" + Self.fileName),
            let names = try? JSONDecoder().decode(Self.self, from: bytes)
        else { return }
        self = names
    }

    fileprivate init(_ names: [String]) { self.names = Array(names.prefix(Self.namesMax)) }

    /// Remembers the names of the account's devices. Failures are ignored.
    static func remember(devices: [String], in options: HomeOptions) {
        let words = options.home.map { ["--home", $0] } ?? []
        if let folder = CompletionPlace(words)?.folder { SeenNames(devices).save(in: folder) }
    }

    private func save(in folder: String) {
        guard let bytes = try? JSONEncoder().encode(self),
            (try? PrivateFiles.makeFolder(folder)) != nil,
            let file = try? AtomicFile(path: folder + "/" + Self.fileName, replaces: true)
        else { return }
        try? file.write([UInt8](bytes))
        try? file.finish()
    }
}

/// The file in which an operator's command remembers the names of accounts. Failures are ignored.
enum SeenAccounts {
    /// More than the names take that are kept.
    private static let bytesMax = 1 << 20

    /// - Parameter keepsOthers: Whether the names that it has stay.
    static func remember(_ names: [String], beside keepsOthers: Bool = false) {
        let environment = ProcessInfo.processInfo.environment
        let file =
            if let caller = SudoCaller(environment) {
                caller.acting { open(in: caller.home + "/.cache/ubiquity") } ?? nil
            } else {
                folder(environment).flatMap { open(in: $0) }
            }
        guard let file else { return }
        let bytes = try? file.read(upToCount: bytesMax)
        let old = bytes.flatMap { try? JSONDecoder().decode(SeenNames.self, from: $0) }
        let names = SeenNames(names + (keepsOthers ? old?.names ?? [] : []))
        guard let new = try? JSONEncoder().encode(names) else { return }
        try? file.truncate(atOffset: 0)
        try? file.seek(toOffset: 0)
        try? file.write(contentsOf: new)
    }

    static func folder(_ environment: [String: String]) -> String? {
        let cache =
            environment[folder: "XDG_CACHE_HOME"]
            ?? environment[folder: "HOME"].map { $0 + "/.cache" }
        return cache.map { $0 + "/ubiquity" }
    }

    private static func open(in folder: String) -> FileHandle? {
        guard (try? PrivateFiles.makeFolder(folder)) != nil else { return nil }
        let file = Foundation.open(
            folder + "/" + SeenNames.fileName, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        return file < 0 ? nil : FileHandle(fileDescriptor: file, closeOnDealloc: true)
    }
}

/// The user who has called this command with `sudo`.
struct SudoCaller {
    let home: String
    private let user: UInt32
    private let group: UInt32

    /// Fails if this is not root, or if no other user has called it.
    init?(_ environment: [String: String]) {
        guard geteuid() == 0, let user = environment["SUDO_UID"].flatMap(UInt32.init), user != 0,
            let entry = getpwuid(user), let home = entry.pointee.pw_dir
        else { return nil }
        (self.user, group) = (user, entry.pointee.pw_gid)
        self.home = String(cString: home)
    }

    /// Makes the whole process that user's, for good.
    func become() throws(Failure) {
        guard setgroups(0, nil) == 0, setgid(group) == 0, setuid(user) == 0,
            setenv("HOME", home, 1) == 0
        else { throw Self.refusal }
    }

    static let refusal = Failure(
        .noPermission,
        "this device cannot be signed in with sudo; run `ubiquity sign-in` without it")

    /// Calls `body` with that user's rights, so that no link of theirs leads root to any file. The
    /// whole process has them meanwhile.
    /// - Returns: Nil if the system does not allow it.
    func acting<Result>(_ body: () -> Result) -> Result? {
        var groups = [gid_t](repeating: 0, count: Int(max(0, getgroups(0, nil))))
        guard getgroups(Int32(groups.count), &groups) == groups.count, setgroups(0, nil) == 0
        else { return nil }
        defer {
            precondition(
                seteuid(0) == 0 && setegid(0) == 0 && setgroups(groups.count, groups) == 0,
                "Root cannot be root again")
        }
        guard setegid(group) == 0, seteuid(user) == 0 else { return nil }
        return body()
    }
}
