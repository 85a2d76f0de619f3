// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import UbiquityCore

extension AccountCommand {
    struct Limits: OperatorCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show or change the limits that an account has of its own.",
            discussion: """
                Limits that are not given stay as they are; `default` stands for the server's own. \
                Without options, shows the limits. The account's devices learn of a change at \
                once.

                JSON: {"account", "limits": {"store-bytes", "keys", "history-days", \
                "history-versions", "history-bytes"}}, without those that are the server's.
                """)

        @Argument(
            help: "The account's name.", completion: Completions.accounts, transform: notEmpty)
        var name: String

        @Option(
            help: ArgumentHelp(
                "The most bytes of all values of a store, such as 5MB or 5242880.",
                valueName: "bytes"),
            transform: { try OwnLimit($0, .storeBytes) })
        var storeBytes: OwnLimit?

        @Option(
            help: ArgumentHelp("The most keys of a store.", valueName: "number"),
            transform: { try OwnLimit($0, .keys) })
        var keys: OwnLimit?

        @Option(
            help: ArgumentHelp("Days for which history is kept; 0 for none.", valueName: "number"),
            transform: { try OwnLimit($0, .historyDays) })
        var historyDays: OwnLimit?

        @Option(
            help: ArgumentHelp("The most versions of a key in the history.", valueName: "number"),
            transform: { try OwnLimit($0, .historyVersions) })
        var historyVersions: OwnLimit?

        @Option(
            help: ArgumentHelp("The most bytes of a store's history.", valueName: "bytes"),
            transform: { try OwnLimit($0, .historyBytes) })
        var historyBytes: OwnLimit?

        @OptionGroup var operation: OperatorOptions
        @OptionGroup var json: JSONOption

        func run() async throws {
            let changes = [storeBytes, keys, historyDays, historyVersions, historyBytes]
                .compactMap(\.self)
            let limits = try await operation.withClient(about: .account(name)) { client in
                var limits = try await client.limits(accountName: name)
                guard !changes.isEmpty else { return limits }
                for change in changes { try limits.set(change.name, to: change.value) }
                try await client.limit(accountName: name, to: limits)
                return limits
            }
            if json.isOn {
                return Output.print(["account": .string(name), "limits": .limits(limits)])
            }
            guard limits != AccountLimits() else {
                return Output.print("The account \(name) has the server's limits.")
            }
            let rows = AccountLimits.Name.allCases.map { limit in
                let value = limits.values[limit].map { Phrase.grouped($0) }
                let none = limit == .historyDays && limits.values[limit] == 0
                return [limit.rawValue, none ? "0: no history is kept" : value ?? "default"]
            }
            Table(header: ["LIMIT", "VALUE"], rows: rows).print()
        }
    }
}

/// A limit on the command line, checked.
struct OwnLimit: Sendable {
    let name: AccountLimits.Name
    /// Nil for the server's.
    let value: Int?

    init(_ text: String, _ name: AccountLimits.Name) throws {
        self.name = name
        guard text != "default" else {
            value = nil
            return
        }
        guard let number = Self.number(text, isBytes: name.isBytes) else {
            throw ValidationError(
                name.isBytes
                    ? "it needs a number of bytes, such as 5242880, 5MB or 5MiB, or `default`."
                    : "it needs a whole number, or `default`.")
        }
        var limits = AccountLimits()
        do { try limits.set(name, to: number) } catch {
            let none = name.isOfHistory && number == 0 ? " For no history: --history-days 0." : ""
            throw ValidationError(
                "it must be from \(Phrase.grouped(name.range.lowerBound)) to "
                    + "\(Phrase.grouped(name.range.upperBound)), or `default`.\(none)")
        }
        value = number
    }

    private static let units = [
        ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("kB", 1_000), ("KB", 1_000),
        ("MB", 1_000_000), ("GB", 1_000_000_000),
    ]

    private static func number(_ text: String, isBytes: Bool) -> Int? {
        let unit = isBytes ? units.first { text.hasSuffix($0.0) } : nil
        guard let unit else { return Int(text) }
        guard let number = Int(text.dropLast(unit.0.count)) else { return nil }
        let (product, isTooLarge) = number.multipliedReportingOverflow(by: unit.1)
        return isTooLarge ? nil : product
    }
}

extension AccountLimits.Name {
    fileprivate var isBytes: Bool { self == .storeBytes || self == .historyBytes }
    fileprivate var isOfHistory: Bool { self == .historyVersions || self == .historyBytes }
}

extension JSON {
    static func limits(_ limits: AccountLimits) -> JSON {
        .object(
            AccountLimits.Name.allCases.compactMap { name in
                limits.values[name].map { (name.rawValue, .integer($0)) }
            })
    }
}
