// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity

/// The folder of this device's sign-in and values.
struct HomeOptions: ParsableArguments {
    @Option(
        "The folder of this device's sign-in and values.", "folder",
        discussion: "Default: UBIQUITY_HOME, or the system's folder for application data.",
        completion: .directory)
    var home: String?

    var given: [String] { UbiquityCLI.given(("--home", home != nil)) }

    func open() throws -> DeviceHome { try DeviceHome(path: home) }
}

/// The store to use.
struct StoreOptions: ParsableArguments {
    @Option(
        "The store, such as TEAMID.com.example.app.", "identifier",
        discussion: "Default: UBIQUITY_KVSTORE_IDENTIFIER.", completion: Completions.stores)
    var store: String?

    @OptionGroup var home: HomeOptions

    var given: [String] { UbiquityCLI.given(("--store", store != nil)) + home.given }

    var configuration: UbiquityConfiguration {
        var configuration = UbiquityConfiguration(identifier: store, home: home.home)
        configuration.logger = .program
        configuration.giver = "--store"
        return configuration
    }

    /// - Throws: ``Failure`` if no store is named.
    func identifier() throws -> String {
        guard let identifier = try configuration.resolvedIdentifier() else {
            throw Failure(
                .usage,
                "no store is given: use --store IDENTIFIER, or set "
                    + "\(UbiquityConfiguration.identifierVariable) in the environment")
        }
        return identifier
    }
}

/// The way in which a command uses the server.
struct SyncOptions: ParsableArguments {
    @Flag(help: "Do not contact the server.")
    var local = false

    @OptionGroup var time: TimeoutOption

    func validate() throws {
        if local { try refuse(time.given, "with --local, which does not ask the server.") }
    }
}

/// A number of seconds, with or without its unit: "30" or "30s".
private func secondsOf(_ text: String) throws -> Double {
    guard let seconds = Double(text.hasSuffix("s") ? text.dropLast() : text[...]) else {
        throw ValidationError("\"\(text)\" is not a number of seconds.")
    }
    return seconds
}

/// The timeout for the server.
struct TimeoutOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How long to wait for the server, from the last byte sent. (default: 5; blame, diff, rewind, sync and undo: 30; "
                + "sync --until: 90)", valueName: "seconds"),
        transform: secondsOf)
    var timeout: Double?

    var given: [String] { UbiquityCLI.given(("--timeout", timeout != nil)) }

    func seconds(_ standard: Double = 5) -> Double { timeout ?? standard }

    func validate() throws {
        guard timeout.map({ $0 > 0 && $0 <= 1e6 }) ?? true else {
            throw ValidationError("--timeout needs a number of seconds above 0, at most 1000000.")
        }
    }
}

/// The same settings independent of their command-line syntax.
struct SyncPolicy {
    var isLocal = false
    var timeout: Double
}

extension SyncOptions {
    var policy: SyncPolicy { SyncPolicy(isLocal: local, timeout: time.seconds()) }
}

/// Whether a command prints JSON for programs, and in which form.
protocol JSONForm {
    var isOn: Bool { get }
    func print(_ document: JSON)
}

extension JSONForm {
    /// Prints the document if JSON is wanted, and otherwise the sentence.
    func print(_ document: @autoclosure () -> JSON, or sentence: @autoclosure () -> TerminalText) {
        if isOn { print(document()) } else { Output.print(sentence()) }
    }

    /// Prints the list if JSON is wanted, and otherwise the table, or a note that there is nothing.
    func print(_ list: [JSON], or table: @autoclosure () -> Table, ifEmpty note: TerminalText) {
        if isOn { return print(.array(list)) }
        if list.isEmpty { Output.note(note) } else { table().print() }
    }
}

struct JSONOption: ParsableArguments, JSONForm {
    @Flag(name: .customLong("json"), help: "Print JSON, one document on one line.")
    var isOn = false

    func print(_ document: JSON) { Output.print(document) }
}

/// The form in which a command prints values to programs.
struct ValueJSONOption: ParsableArguments, JSONForm {
    @OptionGroup var plain: JSONOption

    @Flag(help: "Print JSON that keeps all types apart: {\"integer\":\"1\"}, {\"real\":1.0}.")
    var exact = false

    var isOn: Bool { plain.isOn || exact }

    func validate() throws {
        if plain.isOn, exact { throw ValidationError("Give --json or --exact, not both.") }
    }

    func print(_ document: JSON) { Output.print(document, isExact: exact) }
}
