// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer

/// The settings of a server from all sources: options take precedence over environment variables,
/// those over the configuration file, and that over the defaults.
///
/// A setting is an option of `ubiquity serve`, by the same name. Those of the environment and the file
/// become options in front of the given ones, so that each is checked in one place.
struct ServeConfiguration {
    /// The source of a setting.
    enum Origin: Hashable, CustomStringConvertible {
        case option
        case environment(String)
        case file(String, line: Int)
        case standard

        var description: String {
            switch self {
            case .option: "option"
            case .environment(let variable): "environment \(variable)"
            case .file(let path, let line): "\(path):\(line)"
            case .standard: "default"
            }
        }
    }

    /// A value of a setting: some settings may have several.
    struct SettingValue: Hashable {
        var name: String
        var value: String
        var origin: Origin
    }

    /// The settings in effect, in the order of the help, without those that have neither a value nor
    /// a default.
    private(set) var settings: [SettingValue] = []

    /// The options that stand for the settings of the environment and the file.
    private var words: [String] {
        settings.compactMap { given in
            switch given.origin {
            case .option, .standard: nil
            case .environment, .file: ServeSetting.word(given)
            }
        }
    }

    /// The command line with the settings from elsewhere.
    /// - Parameter arguments: Any command line of the program; only one of `serve` is changed.
    /// - Throws: ``Failure`` that names the line or the variable which is wrong.
    static func expanded(
        _ arguments: [String],
        _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(Failure) -> [String] {
        let isQuestion = arguments.contains { ["--help", "-h", "--version"].contains($0) }
        guard arguments.first == "serve", !isQuestion else { return arguments }
        let configuration = try ServeConfiguration(arguments, environment)
        let expanded = ["serve"] + configuration.words + arguments.dropFirst()
        if let error = configuration.fault(in: arguments) { throw error }
        return expanded
    }

    /// - Parameter arguments: A command line of `serve`.
    init(_ arguments: [String], _ environment: [String: String]) throws(Failure) {
        let options = Self.options(arguments)
        // Without a path, the argument parser says so.
        let path = options.first { $0.name == "config" }
            .flatMap { $0.value.isEmpty || $0.value.hasPrefix("--") ? nil : $0.value }
        let layers = [
            options, try Self.variables(environment),
            try path.map { path throws(Failure) in try Self.file(path) } ?? [],
        ]
        var known: Set<String> = []
        var counting: [SettingValue] = []
        for layer in layers {
            let names = Set(layer.map(\.name))
            counting += layer.filter { !known.contains($0.name) }
            known.formUnion(names)
            if !Self.places.isDisjoint(with: names) { known.formUnion(Self.places) }
        }
        let isLAN = counting.contains { $0.name == "lan" && $0.value == "true" }
        for declared in ServeSetting.all {
            let given = counting.filter { $0.name == declared.name }
            let standard =
                known.contains(declared.name)
                ? nil : declared.standard(environment, isLAN: isLAN)
            settings += given
            if let standard {
                settings.append(
                    SettingValue(name: declared.name, value: standard, origin: .standard))
            }
        }
    }

    /// The settings that exclude each other: one that is given also replaces the other from a source
    /// of lower precedence.
    private static let places: Set = ["data", "database"]

    // MARK: - The places

    private static func options(_ arguments: [String]) -> [SettingValue] {
        let flags = Set(ServeSetting.all.filter(\.isFlag).map(\.name))
        var given: [SettingValue] = []
        let words = Array(arguments.dropFirst().prefix { $0 != "--" })
        for (index, word) in words.enumerated() where word.hasPrefix("--") {
            let parts = word.dropFirst(2).split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            let next = index + 1 < words.count ? words[index + 1] : ""
            let value = flags.contains(name) ? "true" : parts.count > 1 ? String(parts[1]) : next
            given.append(SettingValue(name: name, value: value, origin: .option))
        }
        return given
    }

    /// An empty variable is ignored. Several values are separated by spaces. As for every command, a
    /// database takes precedence over a data folder.
    private static func variables(_ environment: [String: String]) throws(Failure) -> [SettingValue]
    {
        var given: [SettingValue] = []
        for declared in ServeSetting.all {
            guard let text = environment[nonEmpty: declared.variable] else { continue }
            let values = declared.isRepeating ? text.split(separator: " ").map(String.init) : [text]
            given += values.map {
                SettingValue(
                    name: declared.name, value: $0, origin: .environment(declared.variable))
            }
        }
        if given.contains(where: { $0.name == "database" }) {
            given.removeAll { $0.name == "data" }
        }
        let known = Set(ServeSetting.all.map(\.variable) + [ServeSetting.prefix + "OPTIONS"])
        let others = Set(environment.keys.filter { $0.hasPrefix(ServeSetting.prefix) })
        if let other = others.subtracting(known).min() {
            throw Failure(
                .badInput,
                "the environment variable \(other) is not a setting; `ubiquity serve --help` "
                    + "lists them: --log-level is \(ServeSetting.prefix)LOG_LEVEL")
        }
        for given in given { try check(given) }
        return given
    }

    private static func file(_ path: String) throws(Failure) -> [SettingValue] {
        let handle = try InputFile.open(path)
        let bytes = [UInt8](try InputFile.read(handle, path))
        let file: ConfigurationFile
        do { file = try ConfigurationFile(bytes) } catch {
            throw Failure(
                .badInput, "\(error.line.map { "\(path):\($0)" } ?? path): \(error.description)")
        }
        var given: [SettingValue] = []
        for setting in file.settings {
            let place = Origin.file(path, line: setting.line)
            guard let declared = ServeSetting.all.first(where: { $0.name == setting.name }) else {
                throw Failure(
                    .badInput,
                    "\(place): there is no setting `\(setting.name)`; `ubiquity serve --help` lists "
                        + "them, without the dashes")
            }
            if let first = given.first(where: { $0.name == setting.name }), !declared.isRepeating {
                throw Failure(
                    .badInput, "\(place): `\(setting.name)` is already set in \(first.origin)")
            }
            given.append(SettingValue(name: setting.name, value: setting.value, origin: place))
        }
        for given in given { try check(given) }
        if let secret = given.first(where: { $0.name == "database" }) {
            try checkSecret(handle, path, secret.origin)
        }
        return given
    }

    /// The address of a database may have a password in it. Looks at the file that was read: the path
    /// may be a link to it, which has permissions of its own.
    private static func checkSecret(
        _ handle: FileHandle, _ path: String, _ place: Origin
    ) throws(Failure) {
        guard PrivateFiles.isForOthers(handle) else { return }
        throw Failure(
            .noPermission,
            "\(place): the address of a database may contain a password, and other users can read "
                + "this file; run `chmod o= \(path)`")
    }

    /// A flag is true or false; everything else is the argument parser's to check.
    private static func check(_ given: SettingValue) throws(Failure) {
        guard ServeSetting.all.contains(where: { $0.name == given.name && $0.isFlag }),
            !["true", "false"].contains(given.value)
        else { return }
        throw Failure(
            .badInput, "\(given.origin): `\(given.name)` is true or false, not `\(given.value)`")
    }

    // MARK: - Errors

    /// The error of the command line, if a setting from elsewhere is the reason.
    private func fault(in arguments: [String]) -> Failure? {
        let own = Array(arguments.dropFirst())
        let others = settings.filter { $0.origin.isElsewhere }
        guard !others.isEmpty else { return nil }
        func error(_ settings: [SettingValue]) -> String? {
            do {
                _ = try ServeCommand.parse(settings.compactMap(ServeSetting.word) + own)
                return nil
            } catch { return ServeCommand.message(for: error) }
        }
        guard let message = error(others) else { return nil }
        let named = others.first { given in
            message.firstRange(of: "--\(given.name)").map { range in
                message[range.upperBound...].first.map { !$0.isLetter && $0 != "-" } ?? true
            } ?? false
        }
        let alone = others.indices.first { index in
            var rest = others
            rest.remove(at: index)
            return error(rest) == nil
        }
        guard let culprit = named ?? alone.map({ others[$0] }) else { return nil }
        let sentence = message.split(whereSeparator: \.isNewline).joined(separator: " ")
        return Failure(.badInput, "\(culprit.origin): \(sentence)")
    }

    // MARK: - Printing

    /// The settings without secrets: the address of the database, and the password in any other
    /// address.
    var shown: [SettingValue] {
        settings.map { given in
            var shown = given
            shown.value =
                given.name == "database"
                ? "(not shown)" : given.value.replacing(#/://[^/@]*@/#, with: "://(not shown)@")
            return shown
        }
    }

    /// For people and programs.
    func print(asJSON isJSON: Bool) {
        guard isJSON else {
            let rows = shown.map { [$0.name, $0.value, $0.origin.description] }
            return Table(header: ["SETTING", "VALUE", "FROM"], rows: rows).lines(
                columns: Output.columns
            )
            .forEach(Output.print)
        }
        Output.print(
            .array(
                shown.map { given in
                    [
                        "name": .string(given.name), "value": .string(given.value),
                        "from": .string(given.origin.description),
                    ]
                }))
    }
}

extension ServeConfiguration.Origin {
    fileprivate var isElsewhere: Bool {
        switch self {
        case .option, .standard: false
        case .environment, .file: true
        }
    }
}

/// A setting as `ubiquity serve` declares it.
private struct ServeSetting {
    var name: String
    var isFlag: Bool
    var isRepeating: Bool
    /// As the help says it.
    var help: String?

    /// The environment variable. A setting that every command understands has no further prefix;
    /// the others have one because Kubernetes and others set variables such as UBIQUITY_PORT for a
    /// service with this name.
    var variable: String {
        let name = name.uppercased().replacing("-", with: "_")
        return ["data", "database"].contains(self.name) ? "UBIQUITY_" + name : Self.prefix + name
    }

    static let prefix = "UBIQUITY_SERVE_"

    /// - Parameter isLAN: Whether the server is for a local network, for which some defaults are others.
    func standard(_ environment: [String: String], isLAN: Bool) -> String? {
        if isFlag { return "false" }
        if name == "data" { return DataOptions.standard(environment, isInstalled: false) }
        let values = help?.components(separatedBy: "; with --lan: ")
        return isLAN ? values?.last : values?.first
    }

    /// Nil for a flag that is false.
    static func word(_ given: ServeConfiguration.SettingValue) -> String? {
        guard let declared = all.first(where: { $0.name == given.name }) else { return nil }
        guard declared.isFlag else { return "--\(given.name)=\(given.value)" }
        return given.value == "true" ? "--\(given.name)" : nil
    }

    /// All that the help of `serve` shows, but the options for this one run.
    static let all: [ServeSetting] =
        CommandParameter.all(of: ServeCommand.self).compactMap { option in
            guard option.shouldDisplay, let long = option.long else { return nil }
            let name = String(long.dropFirst(2))
            let others = ["config", "help", "json", "print-config", "version"]
            guard !others.contains(name) else { return nil }
            let words = option.abstract?.firstMatch(of: /\(default: (?<value>[^)]+)\)/)
            return ServeSetting(
                name: name, isFlag: option.kind == "flag", isRepeating: option.isRepeating,
                help: option.defaultValue ?? words.map { String($0.value) })
        }
}
