// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    /// Whom a device shows its credential to.
    @Suite struct CertificateTests {
        /// A server with an identity, in files of the stage's.
        private func server(
            _ stage: Stage, _ identity: TestIdentity
        ) async throws -> ServerProcess {
            try Self.write(identity, stage)
            return try await ServerProcess.started(stage, options: Self.options(stage))
        }

        private static func options(_ stage: Stage) -> [String] {
            [
                "--tls-certificate", stage.path("certificate.pem"), "--tls-key",
                stage.path("key.pem"),
            ]
        }

        private static func write(_ identity: TestIdentity, _ stage: Stage) throws {
            try identity.write(
                certificate: stage.path("certificate.pem"), key: stage.path("key.pem"))
        }

        private func url(_ server: ServerProcess) -> String { "https://127.0.0.1:\(server.port)" }

        @Test
        func
            `a device that was given the certificates to trust syncs, and through a change of them`()
            async throws
        {
            try await onStage { stage in
                let server = try await server(stage, .local)
                let home = stage.path("home")
                let account = try await UbiquityAccount.signIn(
                    server: url(server), code: server.newCode(isFirst: true),
                    certificates: TestIdentity.authority + "\n" + TestIdentity.own.certificate,
                    home: home)
                #expect(account.server == url(server))
                let device = try Device(home: home)
                defer { device.close() }
                device.store.set("1", forKey: "a")
                try await device.store.synchronizeNow()
                #expect(device.store.status.connection == .connected)

                try Self.write(.own, stage)
                // A further device meets the new certificate, and the first one goes on.
                try await until("the new certificate") {
                    (try? await signIn(server, trusting: TestIdentity.own.certificate)) != nil
                }
                device.store.set("2", forKey: "a")
                try await device.store.synchronizeNow()
            }
        }

        @Test func `SIGHUP makes the server read its files again, and ends nothing`() async throws {
            try await onStage { stage in
                let server = try await server(stage, .local)
                for _ in 0..<3 { server.signal(SIGHUP) }
                try Self.write(.own, stage)
                server.signal(SIGHUP)
                let code = try await server.newCode(isFirst: true)
                try await until("the new certificate") {
                    (try? await UbiquityAccount.signIn(
                        server: url(server), code: code,
                        certificates: TestIdentity.own.certificate, home: stage.path("home")))
                        != nil
                }
            }
        }

        private func signIn(_ server: ServerProcess, trusting certificates: String?) async throws {
            let home = NSTemporaryDirectory() + "ubiquity-home-" + UUID().uuidString
            defer { try? FileManager.default.removeItem(atPath: home) }
            try await UbiquityAccount.signIn(
                server: url(server), code: server.newCode(isFirst: false),
                certificates: certificates, home: home)
        }

        @Test func `the file of a certificate may go once the device is signed in`() async throws {
            try await onStage { stage in
                let server = try await server(stage, .local)
                let file = stage.path("trusted.pem")
                try Data(TestIdentity.authority.utf8).write(
                    to: URL(fileURLWithPath: file))
                let home = stage.path("home")
                try await stage.succeed(
                    "sign-in", "--server", url(server), "--code", server.newCode(isFirst: true),
                    "--certificate", file, "--home", home)
                try FileManager.default.removeItem(atPath: file)
                try await stage.succeed("set", "a", "1", "--store", "a.b", "--home", home)
                let status = try await stage.succeed("status", "--home", home)
                #expect(status.contains("with the certificate given at sign-in"))

                try Self.write(.own, stage)
                try await until("the other certificate") {
                    let run = try await stage.run("sync", "--store", "a.b", "--home", home)
                    return run.status == 69
                        && run.errors.contains("is not the one that this device was told to trust")
                }
            }
        }

        private struct Made: Decodable { var signIn: String }

        private struct Paired: Decodable { var code, link: String }

        @Test func `a link has the key of a server that nobody vouches for, from device to device`()
            async throws
        {
            try await onStage { stage in
                let server = try await server(stage, .own)
                let (first, second) = (stage.path("first"), stage.path("second"))
                let made = try await stage.succeed(
                    "account", "create", "ada", "--json", "--data", server.data, "--server",
                    url(server))
                let signIn = try JSONDecoder().decode(Made.self, from: Data(made.utf8)).signIn
                #expect(signIn.hasSuffix(";\(TestIdentity.ownPin)'"), "\(signIn)")
                let typed = String(signIn.split(separator: "'")[1])
                try await stage.succeed(
                    "sign-in", "--server", url(server), "--code", typed, "--home", first)
                let status = try await stage.succeed("status", "--home", first)
                #expect(status.contains("only with the server's key \(TestIdentity.ownPin)"))

                let pairing = try await UbiquityAccount.pair(home: first)
                let code = try #require(pairing.link.split(separator: "#").last)
                #expect(code == "\(pairing.code);\(TestIdentity.ownPin)")
                try await UbiquityAccount.signIn(
                    server: url(server), code: String(code), home: second)
                let devices = try [Device(home: first), Device(home: second)]
                defer { for device in devices { device.close() } }
                devices[0].store.set("1", forKey: "a")
                try await until("the value") { devices[1].store.string(forKey: "a") == "1" }

                // Another key is refused, and the first one accepted again.
                try await devices[0].store.synchronizeNow()
                try Self.write(.local, stage)
                try await until("the other key") {
                    let run = try await stage.run("status", "--home", first)
                    return run.output.contains("has another key than the one that this device")
                }
                try Self.write(.own, stage)
                devices[0].store.set("2", forKey: "a")
                try await until("the first key") { devices[1].store.string(forKey: "a") == "2" }
            }
        }

        @Test func `a link leads to the server with its key only, and one without to none`()
            async throws
        {
            try await onStage { stage in
                let server = try await server(stage, .own)
                let code = try await server.newCode(isFirst: true)
                let other = "sha256//" + String(repeating: "A", count: 43) + "="
                for (text, words) in [
                    ("\(code);\(other)", "has another key than the one that this device"),
                    (code, "is not trusted by this system"),
                    ("\(code);sha256//\(code)", "key in the link cannot be read"),
                    ("\(code);", "key in the link cannot be read"),
                ] {
                    let run = try await stage.run(
                        "sign-in", "\(url(server))#\(text)", "--home", stage.path("home"))
                    #expect(run.status != 0 && run.errors.contains(words), "\(run)")
                }
                let plain = try await stage.run(
                    "sign-in", "http://127.0.0.1:\(server.port)#\(code);\(other)", "--home",
                    stage.path("home"))
                #expect(plain.errors.contains("does not use TLS"), "\(plain)")
                #expect(try UbiquityAccount.current(home: stage.path("home")) == nil)
                // Nobody has used the code.
                try await stage.succeed(
                    "sign-in", "\(url(server))#\(code);\(TestIdentity.ownPin)", "--home",
                    stage.path("home"))
            }
        }

        @Test
        func `a device that signs in anew after a change of keys leaves no old device behind`()
            async throws
        {
            try await onStage { stage in
                let server = try await server(stage, .own)
                let home = stage.path("home")
                let code = try await server.newCode(isFirst: true)
                try await stage.succeed(
                    "sign-in", "\(url(server))#\(code);\(TestIdentity.ownPin)", "--home", home)
                try Self.write(.local, stage)
                let file = stage.path("trusted.pem")
                try Data(TestIdentity.authority.utf8).write(to: URL(fileURLWithPath: file))
                try await until("the other key") {
                    let run = try await stage.run([
                        "sign-in", "--replace", "--server", url(server), "--code",
                        try await server.newCode(), "--certificate", file, "--home", home,
                    ])
                    #expect(!run.errors.contains("could not be revoked"), "\(run)")
                    return run.status == 0
                }
                #expect(try await UbiquityAccount.devices(home: home).count == 1)
            }
        }

        @Test func `another server at the address never gets the credential for the first`()
            async throws
        {
            try await onStage { stage in
                let first = try await server(stage, .own)
                let home = stage.path("home")
                try await stage.succeed(
                    "sign-in",
                    "\(url(first))#\(try await first.newCode(isFirst: true));\(TestIdentity.ownPin)",
                    "--home",
                    home)
                try await first.stop()
                try Self.write(.local, stage)
                let other = ServerProcess(
                    stage, port: first.port, data: stage.path("other"),
                    options: Self.options(stage))
                try await other.start()
                let file = stage.path("trusted.pem")
                try Data(TestIdentity.authority.utf8).write(to: URL(fileURLWithPath: file))
                let run = try await stage.run([
                    "sign-in", "--replace", "--server", url(other), "--code",
                    try await other.newCode(isFirst: true), "--certificate", file, "--home", home,
                ])
                // It would have said that it does not know it, which counts as revoked.
                #expect(run.status == 0 && run.errors.contains("could not be revoked"), "\(run)")
                try await other.stop()
            }
        }

        @Test func `a device that was given the certificate makes links with its key`() async throws
        {
            for (identity, pin) in [(TestIdentity.own, ";" + TestIdentity.ownPin), (.local, "")] {
                try await onStage { stage in
                    let server = try await server(stage, identity)
                    let home = stage.path("home")
                    try await UbiquityAccount.signIn(
                        server: url(server), code: server.newCode(isFirst: true),
                        certificates: identity.certificate, home: home)
                    let text = try await stage.succeed("pair", "--json", "--home", home)
                    let pairing = try JSONDecoder().decode(Paired.self, from: Data(text.utf8))
                    #expect(pairing.link == "\(url(server))#\(pairing.code)\(pin)")
                }
            }
        }

        @Test(arguments: [
            (TestIdentity.local, nil, "is not trusted by this system"),
            (.elsewhere, TestIdentity.authority, "is for another name"),
            (.expired, TestIdentity.authority, "expired on 2021-01-01"),
            (.local, TestIdentity.own.certificate, "is not the one"),
        ])
        func `a refused certificate is diagnosed, with what to do`(
            identity: TestIdentity, trusted: String?, words: String
        ) async throws {
            try await onStage { stage in
                let server = try await server(stage, identity)
                let code = try await server.newCode(isFirst: true)
                let error = await #expect(throws: UbiquityError.self) {
                    try await UbiquityAccount.signIn(
                        server: url(server), code: code, certificates: trusted,
                        home: stage.path("home"))
                }
                let found = try #require(error)
                #expect(found.description.contains(words), "\(found)")
                #expect(found.code == .unreachable)
                #expect(try UbiquityAccount.current(home: stage.path("home")) == nil)
            }
        }

        @Test func `https to a server with plain HTTP says so, and vice versa`()
            async throws
        {
            try await onStage { stage in
                let plain = try await ServerProcess.started(stage)
                let run = try await stage.run(
                    "sign-in", "--server", url(plain), "--code", "AAAA-BBBB-CCCC", "--home",
                    stage.path("home"))
                #expect(run.status == 69)
                #expect(run.errors.contains("does not use TLS"))
            }
            try await onStage { stage in
                let server = try await server(stage, .local)
                let run = try await stage.run(
                    "sign-in", "--server", server.url, "--code", "AAAA-BBBB-CCCC", "--home",
                    stage.path("home"))
                #expect(run.status != 0)
                #expect(run.errors.contains("This port uses TLS"))
            }
        }

        @Test(arguments: [
            "http://192.0.2.1:7717", "http://127.0.0.1.evil.example", "http://localhost.",
            "http://2130706433", "http://[::2]:7717",
        ])
        func `a code does not leave the machine in plain HTTP`(server: String) async throws {
            try await onStage { stage in
                let home = stage.path("home")
                let error = await #expect(throws: UbiquityError.self) {
                    try await UbiquityAccount.signIn(
                        server: server, code: "AAAA-BBBB-CCCC", home: home)
                }
                #expect(error?.code == .refused)
                let run = try await stage.run(
                    "sign-in", "--server", server, "--code", "AAAA-BBBB-CCCC", "--home", home)
                #expect(run.status == 64)
                #expect(run.errors.contains("--allow-plain-http"))
                let credential = stage.path("credential")
                try Data("ubo_0123456789012345678901234567".utf8).write(
                    to: URL(fileURLWithPath: credential))
                let create = try await stage.run(
                    "account", "create", "ada", "--server", server, "--operator-credential",
                    credential)
                #expect(create.status == 64)
                #expect(create.errors.contains("--allow-plain-http"))
            }
        }

        @Test func `an operator's credential that others can read is not used`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let file = server.data + "/operator-credential"
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o644], ofItemAtPath: file)
                let run = try await stage.run(
                    "account", "create", "ada", "--server", server.url,
                    "--operator-credential", file)
                #expect(run.status == 77)
                #expect(run.errors.contains("chmod 600 \(file)"))
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o600], ofItemAtPath: file)
                try await stage.succeed(
                    "account", "create", "ada", "--server", server.url,
                    "--operator-credential", file)
            }
        }
    }
}
