// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import NIOHTTP1
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore
internal import UbiquityWire

extension EndToEndTests {
    /// Tests that text from others cannot control a terminal.
    @Suite struct TerminalTextTests {
        /// Clears the screen in two ways, turns the writing round, hides, and begins another line.
        private static let evil = "a\u{1B}[2J\u{9B}2Jb\u{202E}c\u{200B}d\nubiquity: all is well"
        private static let json = #"a\u001b[2J\u009b2Jb\u202ec\u200bd\nubiquity: all is well"#

        private func expectSafe(
            _ text: String, lines: Int? = nil, at location: SourceLocation = #_sourceLocation
        ) {
            let acting = text.unicodeScalars.filter { $0.isControl && $0 != "\n" }
            #expect(acting.isEmpty, "\(text.debugDescription)", sourceLocation: location)
            if let lines {
                let found = text.split(separator: "\n").count
                #expect(found == lines, "\(text.debugDescription)", sourceLocation: location)
            }
        }

        @Test func `a server's problem text cannot control a terminal`() async throws {
            let problem = #"{"code":"not-yours","status":403,"detail":"\#(Self.json)"}"#
            let server = try await StubServer { _ in
                .init("application/problem+json", status: .forbidden, Array(problem.utf8))
            }
            try await onStage { stage in
                let home = ["--home", stage.path("home")]
                let store = ["--store", Device.identifier]
                try signIn(stage.path("home"), at: server.address, as: Self.evil)
                for arguments in [
                    ["device", "list"], ["sync"] + store, ["set", "k", "1"] + store,
                ] {
                    let run = try await stage.run(arguments + home)
                    #expect(run.errors.contains(#"a\u001b[2J"#), "\(arguments): \(run)")
                    expectSafe(run.output + run.errors, lines: 1)
                }
                for arguments in [["status"] + store, ["doctor"] + store, ["status", "--json"]] {
                    let run = try await stage.run(arguments + home)
                    expectSafe(run.output + run.errors)
                    #expect(!(run.output + run.errors).contains("\nubiquity: all is well"))
                }
                let out = try await stage.run(["sign-out"] + home)
                expectSafe(out.output + out.errors, lines: 2)
            }
            try await server.close()
        }

        @Test func `what a server lists cannot control a terminal`() async throws {
            var (list, trail) = (WireDeviceList(), WireAuditTrail())
            list.devices = [.init()]
            list.devices[0].id = Self.evil
            list.devices[0].name = Self.evil
            list.devices[0].stores = [Self.evil]
            trail.entries = [.init()]
            trail.entries[0].number = 1
            trail.entries[0].deed = Self.evil
            trail.entries[0].account = Self.evil
            trail.entries[0].actor = Self.evil
            trail.entries[0].detail = Self.evil
            let type = WireFormat.protobuf.rawValue
            let devices = try await StubServer { [list] _ in
                .init(type, WireFormat.protobuf.encode(list))
            }
            let audit = try await StubServer { [trail] _ in
                .init(type, WireFormat.protobuf.encode(trail))
            }
            try await onStage { stage in
                let home = ["--home", stage.path("home")]
                try signIn(stage.path("home"), at: devices.address, as: Self.evil)
                let shown = try await stage.run(["device", "list"] + home)
                #expect(shown.status == 0)
                expectSafe(shown.output, lines: 2)
                expectSafe(
                    try await stage.run(["device", "list", "--json"] + home).output, lines: 1)
                let credential = stage.path("credential")
                try "ubo_\(String(repeating: "a", count: 43))".write(
                    toFile: credential, atomically: true, encoding: .utf8)
                chmod(credential, 0o600)
                let printed = try await stage.run(
                    "audit", "--limit", "1", "--server", audit.address, "--operator-credential",
                    credential)
                #expect(printed.status == 0, "\(printed)")
                expectSafe(printed.output, lines: 2)
            }
            try await devices.close()
            try await audit.close()
        }

        #if os(Linux)
        @Test func `long work shows its progress on a terminal, and nothing in a pipe`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                // Each way takes five seconds at least.
                let slow = 40_000
                let up = try await NarrowProxy(to: server.port, bytesPerSecond: (slow, nil))
                let down = try await NarrowProxy(to: server.port, bytesPerSecond: (nil, slow))
                let home = try await server.newHome("a", isFirst: true, through: up.url)
                let other = try await server.newHome("b", through: up.url)
                let third = try await server.newHome("c", through: down.url)
                let file = stage.path("import.plist")
                let entries = (0..<20).map {
                    ("key \($0)", String(repeating: UUID().uuidString, count: 280))
                }
                try PropertyListSerialization.data(
                    fromPropertyList: Dictionary(uniqueKeysWithValues: entries), format: .binary,
                    options: 0
                ).write(to: URL(fileURLWithPath: file))
                let options = ["--timeout", "300", "--store"]
                try await stage.succeed(
                    ["import", file, "--home", third] + options + ["TEAM.first"])
                async let seen = PseudoTerminal.run(
                    ["import", file, "--home", home] + options + ["TEAM.seen"], on: stage)
                async let piped = stage.run(
                    ["import", file, "--home", other] + options + ["TEAM.piped"])
                async let exported = PseudoTerminal.run(
                    ["account", "export", "--home", third, "--output", stage.path("a.json")],
                    on: stage)
                let shown = try await seen
                #expect(
                    shown.contains("\u{1B}[K")
                        && shown.contains(#/Sending 20 keys: [0-9.]+ (bytes|kB|MB)/#),
                    "\(shown.debugDescription)")
                #expect(shown.hasSuffix("\r\u{1B}[KImported 20 keys.\n"))
                let run = try await piped
                #expect(run.output == "Imported 20 keys.\n" && run.errors.isEmpty, "\(run)")
                let export = try await exported
                #expect(
                    export.contains(/Exporting: [0-9.]+ (bytes|kB|MB)/),
                    "\(export.debugDescription)")
                try await up.close()
                try await down.close()
            }
        }

        @Test func `a value is raw to a program and a file, and never to a terminal`() async throws
        {
            try await onStage { stage in
                let device = try Device(home: stage.path("home"))
                let bytes = Data(Self.evil.utf8)
                device.store.set(Self.evil, forKey: Self.evil.prefix(20).description)
                device.store.set(Self.evil, forKey: "text")
                device.store.set(bytes, forKey: "data")
                #expect(device.store.synchronize())
                device.close()
                let options = ["--local", "--home", device.home, "--store", Device.identifier]
                for (arguments, raw) in [
                    (["get", "text"], Self.evil + "\n"), (["get", "text", "--raw"], Self.evil),
                    (["get", "data", "--raw"], Self.evil),
                ] {
                    let run = try await stage.run(arguments + options)
                    #expect(run.output == raw)
                    let shown = try await PseudoTerminal.run(arguments + options, on: stage)
                    expectSafe(shown)
                    #expect(shown.contains(#"a\u001b[2J\u009b2Jb\u202ec\u200bd"#))
                }
                for arguments in [
                    ["list"], ["list", "--json"], ["export", "--binary"], ["export", "--json"],
                    ["get", "text", "--json"], ["get", "text", "--exact"], ["list", "--exact"],
                    ["list", "--prefix", "a"], ["list", "--prefix", Self.evil],
                    ["history", "text"], ["get", Self.evil], [Self.evil], ["get", "a", Self.evil],
                    ["get", "--" + Self.evil], ["get", "a", "--timeout", Self.evil],
                    ["set", "a", "--integer", Self.evil],
                    ["set", "a", "--array", "--" + Self.evil],
                    ["watch", "--initial", "--count", Self.evil], ["help", Self.evil],
                ] {
                    expectSafe(try await PseudoTerminal.run(arguments + options, on: stage))
                }
                for arguments in [["list"], ["list", "--json"]] {
                    expectSafe(try await stage.run(arguments + options).output)
                }
            }
        }
        #endif
    }
}
