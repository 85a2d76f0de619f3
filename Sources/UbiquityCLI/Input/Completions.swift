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
    /// The names that `ubiquity devices` or `ubiquity device list` last showed.
    static let devices = kind { SeenNames(in: CompletionPlace($0)?.folder).names }
    /// The names that `ubiquity account list` last showed.
    static let accounts = kind { _ in SeenNames(in: SeenNames.accountsFolder).names }

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
        home.storePaths(in: state.folder).compactMap { path in
            StoreFileName.identifier(of: (path as NSString).lastPathComponent)
        }.filter { !$0.hasSuffix("…") }
    }

    var keys: [String] {
        guard let store else { return [] }
        let path = home.storePath(for: store, folder: state.folder)
        guard FileManager.default.fileExists(atPath: path),
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

    private static let fileName = "names.json"
    private static let namesMax = 1_000

    /// Reads the names. Without a file that can be read, there are none.
    init(in folder: String?) {
        guard let folder, let bytes = try? PrivateFiles.read(folder + "/" + Self.fileName),
            let names = try? JSONDecoder().decode(Self.self, from: bytes)
        else { return }
        self = names
    }

    private init(_ names: [String]) { self.names = Array(names.prefix(Self.namesMax)) }

    /// Remembers the names of the account's devices. Failures are ignored.
    static func remember(devices: [String], in options: HomeOptions) {
        let words = options.home.map { ["--home", $0] } ?? []
        if let folder = CompletionPlace(words)?.folder { SeenNames(devices).save(in: folder) }
    }

    /// Remembers the names of a server's accounts. Failures are ignored.
    static func remember(accounts: [String]) {
        if let folder = accountsFolder { SeenNames(accounts).save(in: folder) }
    }

    private func save(in folder: String) {
        guard let bytes = try? JSONEncoder().encode(self),
            (try? PrivateFiles.makeFolder(folder)) != nil,
            let file = try? AtomicFile(path: folder + "/" + Self.fileName, replaces: true)
        else { return }
        try? file.write([UInt8](bytes))
        try? file.finish()
    }

    static var accountsFolder: String? {
        let environment = ProcessInfo.processInfo.environment
        let cache =
            environment[nonEmpty: "XDG_CACHE_HOME"]
            ?? environment[nonEmpty: "HOME"].map { $0 + "/.cache" }
        return cache.map { $0 + "/ubiquity" }
    }
}
