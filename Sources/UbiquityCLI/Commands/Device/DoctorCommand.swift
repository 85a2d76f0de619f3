// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityServer

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check this device or a server, and say what to do about problems.",
        discussion: """
            Without --data or --database: this device, its sign-in, the connection to the server, \
            and its stores, or the one that is given. With --data: a server's data folder; run the \
            command as the user that runs the server, for example with `sudo -u ubiquity`. With --database: the PostgreSQL database of \
            servers that share one, from the machine of one of them. Nothing is changed. The first \
            line sums up. Each other line begins with ok, note (nothing is broken yet) or problem; \
            the status is 1 if there is a problem.

            JSON: a list of {"check", "verdict", "sentence"}.
            """)

    @Option(
        "Check a server's data folder instead; - finds it as `ubiquity account` does.", "folder",
        completion: .directory)
    var data: String?

    @Option("Check the database of servers instead; -: that of \(DatabaseOptions.variable).", "url")
    var database: String?

    @Flag(help: "Do not contact the server.")
    var local = false

    @OptionGroup(title: "Store") var store: StoreOptions
    @OptionGroup var json: JSONOption

    func validate() throws {
        if data != nil, database != nil {
            throw ValidationError("Give --data or --database, not both.")
        }
        guard data != nil || database != nil else { return }
        try refuse(
            given(("--local", local)) + store.given,
            "with \(data == nil ? "--database" : "--data"), which checks a server and not this "
                + "device.")
    }

    func run() async throws {
        let findings = try await findings()
        if json.isOn {
            Output.print(.array(findings.map(\.json)))
        } else {
            Output.print("\(Output.styled("\(Finding.summary(findings))", .bold))\n")
            Output.print(TerminalText(lines: findings.map(Self.line)))
        }
        if findings.contains(where: { $0.verdict == .problem }) { Output.end(.no) }
    }

    private func findings() async throws -> [Finding] {
        if let data {
            let folder = DataOptions.expanded(data == "-" ? DataOptions.found() : data)
            try FolderOwner.check(folder)
            return await Progress.showing("Checking") { ServerFacts(dataFolder: folder).findings }
        }
        if let database {
            let given = database == "-" ? DatabaseOptions.fromEnvironment : .init(url: database)
            guard let settings = given else {
                throw ValidationError("\(DatabaseOptions.variable) is not set.")
            }
            return await Progress.showing("Checking") { DatabaseFacts(settings).findings }
        }
        return await Progress.showing("Checking") {
            await DeviceFacts.gather(
                home: store.home.home, configuration: store.configuration, isLocal: local)
        }.findings
    }

    private static func line(_ finding: Finding) -> TerminalText {
        let word = finding.verdict.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)
        let style: Output.Style =
            switch finding.verdict {
            case .ok: .green
            case .note: .bold
            case .problem: .red
            }
        return Output.styled("\(word)", style) + TerminalText(finding.sentence)
    }
}
