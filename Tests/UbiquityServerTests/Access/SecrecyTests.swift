// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Testing
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

extension AccountSuites {
    /// After everything was done once, with a log of all levels: secrets are nowhere, values only where
    /// they belong.
    @Suite struct SecrecyTests {
        @Test func `no log has a secret, a key or a value, and no file a secret`() async throws {
            let folder = try TemporaryFolder()
            let log = LogRecorder()
            let server = try await RunningServer.start(in: folder, log: log) { settings in
                settings.apps = .registered
                settings.signInAllowance = .init(burst: 10_000)
            }
            var secrets = try await doEverything(server)
            secrets.append(try server.operatorCredential)
            let words = ["secret-key", "secret-value", "secret-part"]
            try check(log, secrets + words)
            try check(folder, secrets)
            try await server.stop()
            try check(log, secrets + words)
            try check(folder, secrets)
            for word in words { #expect(try files(of: folder, with: word) == ["ubiquity.sqlite"]) }
        }

        /// - Returns: The codes and credentials.
        private func doEverything(_ server: RunningServer) async throws -> [String] {
            let first = try await server.invite("ada")
            let waiting = try await server.invite("eve")
            let signedIn = try await server.signIn(code: first.code).message(WireSignInAnswer.self)
            _ = try await server.signIn(code: first.code)
            let ada = RunningDevice(
                server: server, id: signedIn.device, account: signedIn.account,
                credential: signedIn.credential)
            let confined = try await server.furtherDevice(stores: ["notes"], seconds: 9_000)
            let forged = "ubd_forged-credential-of-nobody-at-all"
            let send = { (method: String, path: String, credential: String?, body: String?) in
                _ = try await server.send(
                    method, path, credential: credential, body: body.map { Array($0.utf8) },
                    headers: body == nil ? [:] : ["Content-Type": "application/json"])
            }
            try await send("PUT", "/v1/apps/notes", try server.operatorCredential, nil)
            var part = WireRecord.write("secret-key", "secret-value")
            part.part = "xsecret-part"
            #expect(try await ada.push([part, .write("secret-key", "secret-value")]).status == 200)
            let huge = String(repeating: "secret-value", count: 100_000)
            _ = try await ada.push([.write("secret-key", huge)])
            _ = try await ada.push(
                [.write("secret-key", .string("secret-value"), at: nowMilliseconds() + 999_999)])
            let malformed = #"{"transactions": [{"writes": [{"key": "secret-key", "value": 5}]}]}"#
            try await send("POST", "/v1/stores/notes/changes", ada.credential, malformed)
            var stream = try await server.listen(ada)
            _ = try await stream.nextEvent()
            // Every route, by everybody. The own account's end would take the values with it, and so
            // would its reset.
            let credentials = [nil, forged, confined.credential, ada.credential]
            let endings = ["DELETE /v1/account", "DELETE /v1/sealing"]
            for route in AccessRoute.all where !endings.contains(route.description) {
                let path = route.path.replacingOccurrences(of: "{name}", with: "ada")
                    .replacingOccurrences(of: "{id}", with: "0123456789abcdef")
                    .replacingOccurrences(of: "{identifier}", with: "notes")
                for credential in credentials {
                    try await send(route.method, path, credential, route.body)
                }
                guard route.description != "DELETE /v1/accounts/{name}" else { continue }
                try await send(route.method, path, try server.operatorCredential, route.body)
            }
            try await send("GET", "/v1/nothing/\(forged)", ada.credential, nil)
            return [
                first.code, waiting.code, ada.credential, confined.credential, forged,
                "2222-2222-2222",
            ]
        }

        private func check(_ log: LogRecorder, _ words: [String]) throws {
            let text = log.text
            #expect(!text.isEmpty)
            for word in words { #expect(!text.contains(word), "\(word) is in the log") }
        }

        private func check(_ folder: TemporaryFolder, _ secrets: [String]) throws {
            for secret in secrets {
                let bare = secret.replacingOccurrences(of: "-", with: "")
                let found = try files(of: folder, with: secret) + files(of: folder, with: bare)
                #expect(found.allSatisfy { $0 == "operator-credential" })
            }
        }

        private func files(of folder: TemporaryFolder, with word: String) throws -> [String] {
            let data = folder.file("data")
            return try folder.dataFiles().filter { name in
                let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(data)/\(name)"))
                return bytes.range(of: Data(word.utf8)) != nil
            }
        }
    }
}
