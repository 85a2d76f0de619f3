// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Logging
import Testing
import Ubiquity
import UbiquityCore
import UbiquityServer

@testable import UbiquityCLI

struct SettingsTests {
    private func text(_ path: String) throws -> String {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../" + path)
        return try String(contentsOf: file, encoding: .utf8)
    }

    /// The rows of the tables of docs/SETTINGS.md.
    private func documented() throws -> [(option: String, unit: String, fallback: String)] {
        try text("docs/SETTINGS.md").split(separator: "\n").compactMap {
            let cells = $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count > 3, cells[0].hasPrefix("`--") else { return nil }
            return (String(cells[0].dropFirst().dropLast()), cells[1], cells[2])
        }
    }

    /// The help of `serve` for each option.
    private func offered() -> [String: String] {
        let help = ServeCommand.helpMessage(columns: 1_000)
        var offered: [String: String] = [:]
        var option: String?
        for line in help.split(separator: "\n") {
            let text = line.trimmingCharacters(in: .whitespaces)
            // What is said of an option may begin on a line of its own.
            if text.hasPrefix("--") { option = String(text.prefix { $0 != " " }) }
            if let option { offered[option, default: ""] += text + " " }
        }
        return offered
    }

    /// All settings but the clock, which is a function and is printed as one.
    private static func text(_ settings: ServerSettings) -> String {
        Mirror(reflecting: settings).children.filter { $0.label != "clock" }
            .map { "\($0.label ?? "") \($0.value)" }.joined(separator: "\n")
    }

    @Test func `every option that sets a server is documented, with the default it has`() throws {
        let documented = try documented()
        let offered = offered()
        let others = ["--config", "--json", "--print-config", "--version"]
        #expect(Set(documented.map(\.option)) == Set(offered.keys).subtracting(others))
        #expect(documented.count == Set(documented.map(\.option)).count)
        for (option, _, fallback) in documented where Double(fallback) != nil {
            let help = try #require(offered[option])
            #expect(help.contains("(default: \(fallback)"), "\(option)")
        }
    }

    @Test
    func `the server's folder is the variable's, the service's, or the user's, in this order`() {
        let home = ["HOME": "/home/ada"]
        let named = home.merging(["UBIQUITY_DATA": "/srv/ubiquity"]) { $1 }
        func folder(_ environment: [String: String], isInstalled: Bool) -> String {
            DataOptions.standard(environment, isInstalled: isInstalled)
        }
        #expect(folder(named, isInstalled: true) == "/srv/ubiquity")
        #expect(folder(home, isInstalled: true) == "/var/lib/ubiquity")
        #expect(folder(home, isInstalled: false) == "/home/ada/.local/share/ubiquity-server")
        #expect(
            folder(home.merging(["UBIQUITY_DATA": ""]) { $1 }, isInstalled: true)
                == "/var/lib/ubiquity")
        #expect(folder(["XDG_DATA_HOME": "/x"], isInstalled: false) == "/x/ubiquity-server")
        // A relative folder is invalid, and ignored, as for a device's home.
        let relative = home.merging(["XDG_DATA_HOME": "x"]) { $1 }
        #expect(folder(relative, isInstalled: false) == "/home/ada/.local/share/ubiquity-server")
        #expect(folder(["HOME": "h"], isInstalled: false).hasPrefix("~"))
        #expect(DeviceHome.resolve(nil, environment: relative) == "/home/ada/.local/share/ubiquity")
        #expect(DeviceHome.resolve(nil, environment: ["HOME": "h"]) == nil)
    }

    @Test func `a limit out of its range says the range, and how to have no history`() {
        func sentence(_ text: String, _ name: AccountLimits.Name) -> String {
            do {
                _ = try OwnLimit(text, name)
                return ""
            } catch { return "\(error)" }
        }
        #expect(sentence("0", .keys).contains("it must be from 1 to 65,536, or `default`."))
        #expect(sentence("0", .historyVersions).contains("For no history: --history-days 0."))
        #expect(sentence("0", .historyDays) == "")
        #expect(sentence("40000", .historyDays).contains("from 0 to 36,500"))
    }

    @Test func `the defaults that are documented are those of the server`() throws {
        let words = try documented().filter { Double($0.fallback) != nil }
            .flatMap { [$0.option, $0.fallback] }
        let command = try ServeCommand.parse(words)
        var said = ServerSettings(dataFolder: "")
        command.limits.apply(to: &said)
        command.edge.apply(to: &said)
        #expect(Self.text(said) == Self.text(ServerSettings(dataFolder: "")))
        #expect(command.port == said.port)
    }

    @Test func `the limits are documented as the server has them`() throws {
        let documented = try documented()
        for limit in ServerLimit.all {
            let row = try #require(documented.first { $0.option == "--\(limit.option)" })
            #expect(row.unit == limit.unit.rawValue, "\(row.option)")
            #expect(row.fallback == limit.standard.map(LimitOptions.text) ?? "none")
        }
    }

    @Test func `there are at most 41 settings, each with somebody who changes it`() throws {
        let rows = try text("docs/SETTINGS.md").split(separator: "\n").filter {
            $0.hasPrefix("| `--")
        }
        .map { $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } }
        #expect(rows.count <= 41)
        for row in rows { #expect(row.count == 5 && row.last?.isEmpty == false, "\(row)") }
    }

    @Test func `limits that contradict each other are refused`() throws {
        func refusal(_ words: [String]) throws -> String? {
            var settings = ServerSettings(dataFolder: "")
            try ServeCommand.parse(words).limits.apply(to: &settings)
            do { try LimitOptions.check(settings) } catch { return "\(error)" }
            return nil
        }
        #expect(try refusal([]) == nil)
        let small = ["--buffers-bytes-max", "100663295"]
        #expect(try refusal(small)?.contains("Raise it to 100663296, or") == true)
        #expect(try refusal(["--buffers-bytes-max", "100663296"]) == nil)
        #expect(try refusal(["--push-bytes-max", "1000000"])?.contains("contradict") == true)
    }

    @Test func `a key's limit is one of two`() throws {
        #expect(try ServeCommand.parse([]).keyLimit.limit == .utf8Bytes(64))
        let sdk = try ServeCommand.parse(["--key-limit", "128-utf16-units"])
        #expect(sdk.keyLimit.limit == .utf16Units(128))
    }

    @Test func `a limit is set to what is given, and no other is`() throws {
        for limit in ServerLimit.all {
            var (given, wanted) = (ServerSettings(dataFolder: ""), ServerSettings(dataFolder: ""))
            try ServeCommand.parse(["--\(limit.option)", "7"]).limits.apply(to: &given)
            limit.set(7, in: &wanted)
            #expect(Self.text(given) == Self.text(wanted), "\(limit.option)")
            #expect(Self.text(given) != Self.text(ServerSettings(dataFolder: "")))
        }
    }

    @Test(arguments: [
        ["--connections-max", "1.5"], ["--connections-max", "4294967297"],
        ["--connections-max", ""], ["--requests-per-second", "inf"],
        ["--requests-per-second", "nan"], ["--requests-per-second", "-1"],
        ["--store-bytes-max", "1099511627777"], ["--keep-alive-seconds", "0"],
        ["--tls-certificate", "a"], ["--tls-key", "a"], ["--trusted-proxy", "example.com"],
        ["--trusted-proxy", "10.0.0.0/99"], ["--metrics-port", "70000"],
        ["--connections-max", "0"], ["--buffers-bytes-max", "-1"],
        ["--requests-per-second", "0"], ["--keep-alive-seconds", "241"],
        ["--requests-per-second", "1000000001"], ["--key-limit", "64"],
        ["--host-name", "u.example:80"], ["--host-name", ""], ["--log-format", "xml"],
        ["--allowed-origin", "*"], ["--allowed-origin", "https://u.example/"],
    ])
    func `a setting that means nothing is refused`(words: [String]) {
        #expect(throws: (any Error).self) { try ServeCommand.parse(words) }
    }

    @Test func `how long a code is valid is set where it is created`() throws {
        let minutes = ["--code-minutes", "60"]
        let afar = ["--server", "https://u.example", "--operator-credential", "file"]
        for way in [[], afar] {
            let words = ["ada"] + minutes + way
            #expect(try AccountCommand.NewCode.parse(words).validity.seconds == 3_600)
            #expect(try AccountCommand.Create.parse(words).validity.seconds == 3_600)
        }
        #expect(throws: (any Error).self) {
            try AccountCommand.NewCode.parse(["ada", "--code-minutes", "0"])
        }
    }

    @Test func `what is said on the command line reaches the server`() throws {
        let command = try ServeCommand.parse([
            "--tls-certificate", "/c.pem", "--tls-key", "/k.pem", "--trusted-proxy", "10.0.0.0/8",
            "--trusted-proxy", "::1", "--metrics-port", "0", "--requests-per-second", "0.5",
            "--sign-ins-per-second", "2", "--history-days", "2", "--host-name", "u.example",
            "--allowed-origin", "https://a.example", "--allowed-origin", "https://b.example",
        ])
        var settings = ServerSettings(dataFolder: "")
        command.limits.apply(to: &settings)
        command.edge.apply(to: &settings)
        #expect(settings.tls == ServerTLS(certificatePath: "/c.pem", keyPath: "/k.pem"))
        #expect(settings.trustedProxies.map(\.description) == ["10.0.0.0/8", "::1/128"])
        #expect(settings.hostNames == ["u.example"])
        #expect(settings.allowedOrigins == ["https://a.example", "https://b.example"])
        #expect(settings.metricsPort == 0)
        #expect(settings.requestAllowance == Allowance(burst: 5, perSecond: 0.5))
        #expect(settings.signInAllowance == Allowance(burst: 120, perSecond: 2))
        #expect(settings.signInTotalAllowance == Allowance(burst: 2_000, perSecond: 100))
        #expect(settings.historySeconds == 172_800)
    }

    @Test(arguments: [
        ("https://ubiquity.example", nil, nil), ("http://127.0.0.1:7717", nil, nil),
        ("http://192.0.2.1", nil, "none: anybody on the network can read the credential"),
        ("https://ubiquity.example", "PEM", "with the certificate given at sign-in"),
    ])
    func `the status says how a device talks to its server, where that is not as usual`(
        server: String, certificates: String?, words: String?
    ) {
        let account = SignedInAccount(
            server: server, account: "1", accountName: "ada", device: "00ff", deviceName: "desk",
            credential: "ubd_secret", certificates: certificates)
        let text = StatusReport(home: "/home", account: account).text.string
        #expect(text.contains("Encryption") == (words != nil))
        if let words { #expect(text.contains(words)) }
        #expect(!text.contains("ubd_secret"))
    }

    @Test func `a next try is only announced where another program will make it`() throws {
        var status = UbiquitousKeyValueStore.inMemory(UbiquityConfiguration()).engineStatus
        status.link.state = .waiting
        status.link.nextRetry = 1_800_000_000_000
        func isAnnounced(_ change: (inout StatusReport) -> Void) -> [Bool] {
            var report = StatusReport(home: "/home", store: ("TEAM.notes", status))
            change(&report)
            return [
                report.text.string.contains("Next try"),
                !report.json.text.contains(#""nextRetry":null"#),
            ]
        }
        #expect(isAnnounced { $0.leader = "notes (4711)" } == [true, true])
        #expect(isAnnounced { _ in } == [false, false])
        #expect(
            isAnnounced { ($0.leader, $0.isRefused) = ("notes (4711)", true) } == [false, false])
        #expect(
            isAnnounced { ($0.leader, $0.heldUpBy) = ("notes (4711)", "notes (4711)") }
                == [false, false])
    }

    /// The version in what people copy, and in the other client.
    @Test func `all documents and clients have this version`() throws {
        let places: [(file: String, pattern: Regex<(Substring, Substring)>)] = [
            ("README.md", #/ubiquity_([0-9.]+[0-9])_amd64\.deb/#),
            ("README.md", #/from: "([0-9.]+)"/#),
            ("docs/OPERATING.md", #/ubiquity[_-]([0-9]+\.[0-9.]+[0-9])/#),
            ("Clients/JavaScript/package.json", #/"version": "([0-9.]+)"/#),
            ("Clients/JavaScript/src/http.js", #/version = '([0-9.]+)'/#),
            ("Clients/Python/src/ubiquity_store/link.py", #/VERSION = "([0-9.]+)"/#),
        ]
        for (file, pattern) in places {
            let found = try text(file).matches(of: pattern)
            #expect(Set(found.map { String($0.output.1) }) == [ClientVersion.text], "\(file)")
        }
    }

    @Test func `a line of the log is one JSON object whatever is in it`() throws {
        let event = LogEvent(
            level: .notice, message: "A \"message\"\nwith lines.",
            metadata: ["b": "2", "a": ["x": "1"], "list": ["\u{1B}[31m"]], source: nil, file: "",
            function: "", line: 0)
        let line = event.json(at: Date(timeIntervalSince1970: 1_795_000_000.25)).text
        #expect(
            line == "{\"time\":\"2026-11-18T11:06:40.250Z\",\"level\":\"notice\","
                + "\"message\":\"A \\\"message\\\"\\nwith lines.\","
                + "\"metadata\":{\"a\":{\"x\":\"1\"},\"b\":\"2\",\"list\":[\"\\u001b[31m\"]}}")
        #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any])
    }
}
