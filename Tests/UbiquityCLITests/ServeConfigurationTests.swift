// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Logging
import Testing
import UbiquityCore
import UbiquityServer

@testable import UbiquityCLI

/// Settings of a server in a file and in the environment.
struct ServeConfigurationTests {
    /// A file that is gone after the test, with mode 0640.
    private final class File {
        let path = NSTemporaryDirectory() + "ubiquity-" + UUID().uuidString + ".conf"

        init(_ text: String, mode: Int = 0o640) throws {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    private func command(
        _ text: String, _ words: [String] = [], _ environment: [String: String] = [:]
    ) throws -> ServeCommand {
        let file = try File(text)
        let words = ["serve", "--config", file.path] + words
        let expanded = try ServeConfiguration.expanded(words, environment)
        return try #require(try Program.parseAsRoot(expanded) as? ServeCommand)
    }

    /// The error message for a file, without its path.
    private func fault(
        _ text: String, _ words: [String] = [], _ environment: [String: String] = [:]
    ) throws -> String {
        let file = try File(text)
        let failure = #expect(throws: Failure.self) {
            try ServeConfiguration.expanded(
                ["serve", "--config", file.path] + words, environment)
        }
        return try #require(failure).sentence.replacing(file.path, with: "file")
    }

    /// The rows of the tables of docs/SETTINGS.md.
    private func documented() throws -> [String] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../docs/SETTINGS.md")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .compactMap { $0.firstMatch(of: /^\| `--(?<name>[a-z0-9-]+)`/).map { String($0.name) } }
    }

    @Test func `every documented setting can be in the file, in the environment, and is shown`()
        async throws
    {
        let samples = [
            "apps": "registered", "log-level": "info", "log-format": "json", "no-web": "true",
            "lan": "true",
            "require-synchronous-standby": "true", "trusted-proxy": "10.0.0.0/8",
            "allowed-origin": "https://a.example", "key-limit": "128-utf16-units", "data": "/d",
            "database": "postgresql://h/n",
            "identity-keys": "/keys",
        ]
        // What else must be there.
        let company = [
            "tls-certificate": "tls-key = 5", "tls-key": "tls-certificate = 5",
            "metrics-host": "metrics-port = 5", "database-connections": "database = x",
            "require-synchronous-standby": "database = x",
            "identity-issuer": "identity-audience = a\nidentity-keys = /k",
            "identity-client": "identity-issuer = https://i.example\nidentity-keys = /k",
        ]
        let names = try documented()
        #expect(names.count > 30)
        for name in names {
            // A server in this process would not answer meanwhile.
            await Task.yield()
            let value = samples[name] ?? "5"
            var more = company[name] ?? ""
            if name.hasPrefix("identity-"), more.isEmpty {
                let all = ["identity-issuer", "identity-audience", "identity-keys"]
                more = all.filter { $0 != name }.map { "\($0) = /k" }.joined(separator: "\n")
            }
            let file = try File("\(name) = \(value)\n\(more)\n")
            let inFile = ["serve", "--config", file.path]
            let origin = ServeConfiguration.Origin.file(file.path, line: 1)
            #expect(
                try ServeConfiguration(inFile, [:]).settings.contains(
                    .init(name: name, value: value, origin: origin)))
            _ = try ServeConfiguration.expanded(inFile, [:])

            let prefix = ["data", "database"].contains(name) ? "UBIQUITY_" : "UBIQUITY_SERVE_"
            let variable = prefix + name.uppercased().replacing("-", with: "_")
            let given = try ServeConfiguration(["serve"], [variable: value]).settings
            #expect(
                given.contains(.init(name: name, value: value, origin: .environment(variable))))
        }
    }

    @Test func `an option takes precedence over a variable, and that over the file`() throws {
        let file = "port = 1\nkeys-max = 1\nlog-level = info\nno-web = true\n"
        let environment = [
            "UBIQUITY_SERVE_PORT": "2", "UBIQUITY_SERVE_KEYS_MAX": "2",
            "UBIQUITY_SERVE_NO_WEB": "false", "UBIQUITY_SERVE_OPTIONS": "--any",
        ]
        let command = try command(file, ["--port", "3"], environment)
        var settings = ServerSettings(dataFolder: "")
        command.limits.apply(to: &settings)
        #expect(command.port == 3)
        #expect(settings.limits.keysMax == 2)
        #expect(command.logLevel == .info)
        #expect(!command.noWeb)
        #expect(command.host == nil)
    }

    @Test func `the defaults that are others on a local network are shown as such`() throws {
        for (words, host, level) in [
            (["serve"], "127.0.0.1", "notice"), (["serve", "--lan"], "0.0.0.0", "warning"),
        ] {
            let shown = try ServeConfiguration(words, [:]).shown
            func value(_ name: String) -> String? { shown.first { $0.name == name }?.value }
            #expect(value("host") == host && value("log-level") == level)
        }
    }

    @Test(arguments: [
        ["--tls-certificate", "a", "--tls-key", "b"], ["--host", "127.0.0.1"],
        ["--database", "postgresql://h/n"],
    ])
    func `a server of a local network has keys of its own, in its folder, and an open address`(
        others: [String]
    ) throws {
        #expect(throws: (any Error).self) { try ServeCommand.parse(["--lan"] + others) }
        _ = try ServeCommand.parse(["--lan", "--host", "192.168.1.20"])
    }

    @Test func `a setting with several values has those of one place`() throws {
        let file = "trusted-proxy = ::1\ntrusted-proxy = 10.0.0.0/8\n"
        #expect(try command(file).edge.trustedProxy == ["::1", "10.0.0.0/8"])
        #expect(try command(file, ["--trusted-proxy=::2"]).edge.trustedProxy == ["::2"])
        let variable = ["UBIQUITY_SERVE_TRUSTED_PROXY": "::3 ::4"]
        #expect(try command(file, [], variable).edge.trustedProxy == ["::3", "::4"])
    }

    @Test func `a place for the data replaces the other one of a file`() throws {
        let database = ["UBIQUITY_DATABASE": "postgresql://h/n"]
        #expect(try command("data = /d\n").data.data == "/d")
        let inVariable = try command("data = /d\n", [], database)
        #expect(inVariable.data.data == nil)
        #expect(inVariable.node.database.database == "postgresql://h/n")
        let inOption = try command("database = x\n", ["--data", "/d"], database)
        #expect(inOption.data.data == "/d")
        #expect(inOption.node.database.database == nil)
        #expect(try fault("data = /d\ndatabase = x\n").hasPrefix("file:"))
        let both = try command("", [], database.merging(["UBIQUITY_DATA": "/d"]) { $1 })
        #expect(both.data.data == nil)
        #expect(both.node.database.database == "postgresql://h/n")
    }

    @Test(arguments: [["--config"], ["--config="], ["--config", "--print-config"]])
    func `without a path, the parser says that the option has no value`(words: [String]) throws {
        let expanded = try ServeConfiguration.expanded(["serve"] + words, [:])
        #expect(expanded.suffix(words.count) == words)
        #expect(throws: (any Error).self) { try Program.parseAsRoot(expanded) }
    }

    @Test func `a byte-order mark is not a part of the first line`() throws {
        #expect(try command("\u{FEFF}port = 1\r\n").port == 1)
        #expect(try command("\u{FEFF}# Settings\r\nport = 1\r\n").port == 1)
        #expect(try fault("port = 1\n\u{FEFF}host = h\n").hasPrefix("file:2: a name"))
    }

    @Test(arguments: [
        ("# A comment\n\nprot = 1\n", "file:3: there is no setting `prot`"),
        ("port = 1\nkeys-max = 9\nport = 2\n", "file:3: `port` is already set in file:1"),
        ("host = 0.0.0.0\nport = 70000\n", "file:2: --port needs a number from 0 to 65535."),
        ("keys-max = many\n", "file:1: The value 'many' is invalid for '--keys-max"),
        ("log-level = loud\n", "file:1: The value 'loud' is invalid for '--log-level"),
        ("no-web = yes\n", "file:1: `no-web` is true or false, not `yes`"),
        ("port = 1\ntls-key = /k\n", "file:2: Give both --tls-certificate and --tls-key"),
        ("port = 1\nidentity-claim = c\n", "file:2: --identity-claim has no effect without"),
        ("port 1\n", "file:1: write `name = value`"), ("port =\n", "file:1: `port` has no value"),
        ("= 1\n", "file:1: there is no name"), ("--port = 1\n", "file:1: a name has lowercase"),
        ("listeners-max = 9\n", "file:1: there is no setting `listeners-max`"),
        ("config = other.conf\n", "file:1: there is no setting `config`"),
        ("end-with-input = true\n", "file:1: there is no setting `end-with-input`"),
        ("port = 1\nhost-name = \u{1B}[31m\n", "file:2: the line has a control character"),
    ])
    func `a wrong line is named`(text: String, sentence: String) throws {
        let fault = try fault(text)
        #expect(fault.hasPrefix(sentence), "\(fault)")
    }

    @Test func `a wrong option is not blamed on the file`() throws {
        let file = try File("port = 1\n")
        let words = ["serve", "--config", file.path, "--keys-max", "none"]
        let expanded = try ServeConfiguration.expanded(words, [:])
        #expect(throws: (any Error).self) { try Program.parseAsRoot(expanded) }
    }

    @Test(arguments: [
        (["UBIQUITY_SERVE_PROT": "1"], "the environment variable UBIQUITY_SERVE_PROT"),
        (["UBIQUITY_SERVE_HEAD_SECONDS_MAX": "1"], "the environment variable UBIQUITY_SERVE_HEAD"),
        (["UBIQUITY_SERVE_PORT": "x"], "environment UBIQUITY_SERVE_PORT: The value 'x'"),
        (["UBIQUITY_SERVE_NO_WEB": "1"], "environment UBIQUITY_SERVE_NO_WEB: `no-web` is true"),
    ])
    func `a wrong variable is named`(environment: [String: String], sentence: String) throws {
        let fault = try fault("", [], environment)
        #expect(fault.hasPrefix(sentence), "\(fault)")
    }

    @Test func `a file with the address of a database is for nobody else`() throws {
        let text = "database = postgresql://a:secret@h/n\n"
        for mode in [0o644, 0o642, 0o641] {
            let file = try File(text, mode: mode)
            let failure = #expect(throws: Failure.self) {
                try ServeConfiguration.expanded(["serve", "--config", file.path], [:])
            }
            #expect(failure?.status == .noPermission)
            #expect(failure?.sentence.contains("secret") == false)
        }
        #expect(try command(text).node.database.database == "postgresql://a:secret@h/n")
        // What counts is the file, not a link to it.
        let file = try File(text)
        let link = file.path + ".link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file.path)
        defer { try? FileManager.default.removeItem(atPath: link) }
        #expect(try ServeConfiguration.expanded(["serve", "--config", link], [:]).count == 4)
    }

    @Test func `passwords in addresses are not shown`() throws {
        let file = try File("identity-keys = https://u:SECRET@h/keys\ndatabase = SECRET\n")
        let shown = try ServeConfiguration(["serve", "--config", file.path], [:]).shown
        #expect(!shown.contains { $0.value.contains("SECRET") })
        #expect(shown.contains { $0.value == "https://(not shown)@h/keys" })
    }

    @Test func `a file has a limit in bytes and in lines`() throws {
        #expect(throws: ConfigurationFile.Fault(reason: .tooManyBytes)) {
            try ConfigurationFile([UInt8](repeating: 35, count: 65_537))
        }
        #expect(throws: ConfigurationFile.Fault(reason: .tooManyLines)) {
            try ConfigurationFile([UInt8](repeating: 10, count: 2_048))
        }
        #expect(throws: ConfigurationFile.Fault(reason: .notUTF8, line: 2)) {
            try ConfigurationFile([10, 0xFF])
        }
        #expect(try ConfigurationFile([UInt8](repeating: 35, count: 65_536)).settings.isEmpty)
    }

    private func text(_ path: String) throws -> String {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../" + path)
        return try String(contentsOf: file, encoding: .utf8)
    }

    @Test func `containers start the server with options that it has`() throws {
        let services = try text("Deployment/compose.yaml").matches(of: /command: (serve .+)/)
            .map { $0.output.1.split(separator: " ").map(String.init) }
        let image = try #require(
            try text("Deployment/Dockerfile").firstMatch(of: /\nCMD (\[.+\])/)?.output.1)
        let words = try JSONDecoder().decode([String].self, from: Data(image.utf8))
        #expect(services.count == 3 && words.first == "serve")
        for line in services + [words] {
            let isNode = line != words
            let expanded = try ServeConfiguration.expanded(
                line, isNode ? ["UBIQUITY_DATABASE": "postgresql://h/n"] : [:])
            #expect(try Program.parseAsRoot(expanded) is ServeCommand, "\(line)")
        }
    }

    @Test func `the image's build has every folder that the package names`() throws {
        let copied = Set(
            try text("Deployment/Dockerfile").matches(of: #/\nCOPY ([A-Za-z.]+) /#)
                .map { String($0.output.1) })
        let package = try text("Package.swift")
        let named = package.matches(of: /path: "([A-Za-z]+)\//).map { String($0.output.1) }
        #expect(named.count > 10)
        // Where targets without a path are.
        let all = Set(named).union(["Package.swift", "Sources", "Tests"])
        #expect(copied.isSuperset(of: all), "\(all.subtracting(copied))")
        #expect(Set(named).isSubset(of: ["Examples", "Tests"]))
    }

    @Test func `the file that is installed says nothing but where the data is`() throws {
        let text = try text("Deployment/server.conf")
        #expect(
            try ConfigurationFile(Array(text.utf8)).settings.map { [$0.name, $0.value] }
                == [["data", "/var/lib/ubiquity"]])
        // Its comments that look like settings are some.
        let documented = try documented()
        for line in text.split(separator: "\n") {
            guard let match = line.wholeMatch(of: /\#(?<name>[a-z-]+) = .*/) else { continue }
            #expect(documented.contains(String(match.name)))
        }
    }
}
