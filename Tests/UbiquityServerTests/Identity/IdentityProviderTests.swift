// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import Testing
internal import Ubiquity
internal import UbiquityCore
internal import UbiquityServer
internal import UbiquityWire

/// Signing in by a token of an identity provider whose keys are in a file.
struct IdentityProviderTests {
    private let provider = TestIdentityProvider()

    private func withProvider(
        keySet: String? = nil, credentialSeconds: Int64? = nil, clock: ServerClock = .system,
        _ body: (RunningServer) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys.json")
        try (keySet ?? provider.keySet).write(toFile: path, atomically: true, encoding: .utf8)
        try await withServer(
            in: folder,
            {
                $0.clock = clock
                $0.identity = IdentitySettings(
                    rule: IdentityRule(issuer: provider.issuer, audiences: ["app"]),
                    keys: .file(path), credentialSeconds: credentialSeconds)
            }, body)
    }

    private func expectRefused(
        _ token: String, _ code: String = "token-invalid", by server: RunningServer,
        _ comment: Comment? = nil
    ) async throws {
        let answer = try await server.signIn(token: token)
        #expect(answer.status == 401, comment)
        #expect(try answer.problem.code == code, comment)
        #expect(!answer.text.contains(token), comment)
    }

    @Test(arguments: TestIdentityProvider.Algorithm.allCases)
    fileprivate func `a token signs a device in, with each kind of key`(
        _ algorithm: TestIdentityProvider.Algorithm
    ) async throws {
        try await withProvider { server in
            let token = provider.token(provider.claims("u1"), algorithm)
            let answer = try await server.signIn(token: token, name: "phone")
            #expect(answer.status == 200, "\(answer.text)")
            let device = try answer.message(WireSignInAnswer.self)
            #expect(device.accountName == "u1-name (id.example)")
            let account = try await server.send(
                "GET", "/v1/account", credential: device.credential
            ).message(WireAccount.self)
            #expect(account.devices.map(\.name) == ["phone"])
        }
    }

    @Test func `an app signs in by a token, and goes on by the next one when its time is over`()
        async throws
    {
        let clock = TestClock(uptime: ServerClock.system.uptime)
        try await withProvider(credentialSeconds: 60, clock: clock.clock) { server in
            let home = server.folder.file("home")
            let token = provider.token(provider.claims("u1"))
            let address = "http://127.0.0.1:\(server.port)"
            let account = try await UbiquityAccount.signIn(
                server: address, identityToken: token, deviceName: "phone", home: home)
            #expect(account.name == "u1-name (id.example)")
            var configuration = UbiquityConfiguration(identifier: "notes", home: home)
            configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let store = try UbiquitousKeyValueStore(configuration: configuration)
            defer { store.close() }
            store.set("blue", forKey: "color")
            try await store.synchronizeNow()
            clock.advance(seconds: 61)
            for await status in store.statuses where status.connection == .unauthorized { break }
            let ending = store.status
            #expect(ending.lastError?.contains("expired") == true, "\(ending)")
            store.set("green", forKey: "color")
            #expect(store.string(forKey: "color") == "green")

            let again = try await UbiquityAccount.signIn(
                server: address, identityToken: token, deviceName: "phone", home: home)
            #expect(again.id == account.id)
            try await store.synchronizeNow()
            let other = try await server.signIn(token: token).message(WireSignInAnswer.self)
            let changes = try await server.send(
                "GET", "/v1/stores/notes/changes", credential: other.credential
            ).message(WireChanges.self)
            #expect(changes.records.map(\.value.string) == ["green"])
        }
    }

    @Test func `one subject has one account, and another subject another`() async throws {
        try await withProvider { server in
            func account(_ claims: [String: Any]) async throws -> String {
                try await server.signIn(token: provider.token(claims))
                    .message(WireSignInAnswer.self).account
            }
            var renamed = provider.claims("u1")
            renamed["preferred_username"] = "another name"
            let first = try await account(provider.claims("u1"))
            #expect(try await account(renamed) == first)
            #expect(try await account(provider.claims("u2")) != first)
        }
    }

    @Test func `a subject with control characters signs in as nobody, and nobody after it`()
        async throws
    {
        try await withProvider { server in
            // Whoever comes first would have had the account of the one whom they look like.
            for subject in ["user-17\0x", "user-17\0", "\0user-17", "user-17\u{200B}"] {
                try await expectRefused(provider.token(provider.claims(subject)), by: server)
            }
            let one = try await server.signIn(token: provider.token(provider.claims("user-17")))
            #expect(one.status == 200)
            try await expectRefused(provider.token(provider.claims("user-17\0x")), by: server)
            let account = try one.message(WireSignInAnswer.self)
            let devices = try await server.send(
                "GET", "/v1/account", credential: account.credential
            ).message(WireAccount.self).devices
            #expect(devices.count == 1)
        }
    }

    @Test func `a file of keys that others can write is refused, at the start and later`()
        async throws
    {
        try await withProvider { server in
            let path = server.folder.file("keys.json")
            chmod(path, 0o666)
            let answer = try await server.signIn(token: provider.token(provider.claims("u1")))
            #expect(answer.status == 503)
        }
        let folder = try TemporaryFolder()
        let path = folder.file("keys.json")
        try provider.keySet.write(toFile: path, atomically: true, encoding: .utf8)
        chmod(path, 0o664)
        let error = await #expect(throws: ServerStartError.self) {
            try await withServer(in: folder, { $0.identity = settings(path) }) { _ in }
        }
        #expect(error.map { "\($0)" }?.contains("other users can write to it") == true)
        guard geteuid() == 0 else { return }
        chmod(path, 0o644)
        chown(path, 65_534, 65_534)
        let other = await #expect(throws: ServerStartError.self) {
            try await withServer(in: folder, { $0.identity = settings(path) }) { _ in }
        }
        #expect(other.map { "\($0)" }?.contains("it belongs to") == true)
    }

    private func settings(_ path: String) -> IdentitySettings {
        IdentitySettings(
            rule: IdentityRule(issuer: provider.issuer, audiences: ["app"]), keys: .file(path))
    }

    @Test func `a token leads to no account that the operator has created, nor to its name`()
        async throws
    {
        try await withProvider { server in
            let ada = try await server.newDevice(account: "ada")
            _ = try await server.newDevice(account: "eve (id.example)")
            let names = [
                "ada", "eve", ada.account, "", "a\u{7}", String(repeating: "x", count: 200),
            ]
            for (number, name) in names.enumerated() {
                var claims = provider.claims("subject \(number)")
                claims["preferred_username"] = name
                let device = try await server.signIn(token: provider.token(claims))
                    .message(WireSignInAnswer.self)
                #expect(device.account != ada.account)
                #expect(!["ada", "eve (id.example)", ""].contains(device.accountName))
            }
        }
    }

    @Test func `a forged token lets nobody in`() async throws {
        try await withProvider { server in
            let claims = provider.claims("u1")
            let good = provider.token(claims)
            let other = TestIdentityProvider()
            let header = ["alg": "ES256", "kid": "ES256"]
            let unsigned = provider.unsigned(claims, header: header)
            let parts = good.split(separator: ".").map(String.init)
            var changed = claims
            changed["sub"] = "somebody else"
            let body = provider.unsigned(changed, header: header).split(separator: ".")[1]
            let forgeries = [
                "another's key": other.token(claims),
                "other claims": "\(parts[0]).\(body).\(parts[2])",
                "no signature": "\(unsigned).",
                "a signature of zeros": "\(unsigned).\(provider.base64(Data(count: 64)))",
                "two parts": unsigned,
                "alg none": provider.unsigned(claims, header: ["alg": "none"]) + ".",
                "alg none, with a key": provider.unsigned(
                    claims, header: ["alg": "none", "kid": "ES256"]) + ".AAAA",
                "no alg": provider.token(claims, header: ["kid": "ES256"]),
                "a shared secret": provider.forgedBySharedSecret(claims),
                "another kind of key": provider.token(
                    claims, header: ["alg": "RS256", "kid": "ES256"]),
                "an unknown key": provider.token(claims, header: ["alg": "ES256", "kid": "x"]),
                "no key, of several": provider.token(claims, header: ["alg": "ES256"]),
                "an extension": provider.token(
                    claims, header: ["alg": "ES256", "kid": "ES256", "crit": ["b64"], "b64": false]),
                "a key of its own": provider.token(
                    claims,
                    header: [
                        "alg": "ES256", "jwk": other.key(.ES256), "kid": "mine",
                        "jku": "http://127.0.0.1:1/keys",
                    ]),
                "nothing": "", "dots": "..", "text": "ubd_abc", "not base64": "%.%.%",
                "no JSON": "AAAA.AAAA.AAAA", "long": String(repeating: "a.", count: 6_000),
            ]
            for (what, token) in forgeries {
                let code = token.isEmpty ? "code-invalid" : "token-invalid"
                try await expectRefused(token, code, by: server, "\(what)")
            }
            #expect(try await server.signIn(token: good).status == 200)
        }
    }

    @Test func `a token with another algorithm does not lock the others out`()
        async throws
    {
        // As many providers publish them: a key without an algorithm.
        try await withProvider(keySet: provider.keySet([provider.key(.RS256)])) { server in
            let claims = provider.claims("u1")
            let odd = provider.token(claims, header: ["alg": "RS512", "kid": "RS256"], .RS256)
            try await expectRefused(odd, by: server)
            #expect(try await server.signIn(token: provider.token(claims, .RS256)).status == 200)
        }
    }

    @Test func `claims that are not for this server, or not now, are refused by name`()
        async throws
    {
        try await withProvider { server in
            let changes: [(String, Any?, String)] = [
                ("iss", "https://id.example/", "token-invalid"), ("iss", nil, "token-invalid"),
                ("aud", "another", "token-invalid"), ("aud", [1], "token-invalid"),
                ("exp", 1_000, "token-expired"), ("exp", nil, "token-invalid"),
                ("exp", "soon", "token-invalid"),
                ("nbf", Date().timeIntervalSince1970 + 3_600, "token-invalid"),
                ("nbf", "soon", "token-invalid"), ("nbf", NSNull(), "token-invalid"),
                ("sub", nil, "token-invalid"), ("sub", 7, "token-invalid"),
            ]
            for (name, value, code) in changes {
                var claims = provider.claims("u1")
                claims[name] = value
                try await expectRefused(provider.token(claims), code, by: server, "\(name)")
            }
            var several = provider.claims("u1")
            several["aud"] = ["another", "app"]
            #expect(try await server.signIn(token: provider.token(several)).status == 200)
        }
    }

    @Test func `a token is not a credential`() async throws {
        try await withProvider { server in
            let token = provider.token(provider.claims("u1"))
            for path in ["/v1/account", "/v1/stores", "/v1/stores/notes/changes"] {
                let answer = try await server.send("GET", path, credential: token)
                #expect(answer.status == 401)
            }
        }
    }

    @Test func `a server without an identity provider accepts no tokens`() async throws {
        try await withServer { server in
            try await expectRefused(
                provider.token(provider.claims("u1")), "token-not-taken", by: server)
        }
    }

    @Test func `attempts with tokens are throttled like those with codes`() async throws {
        try await withServer({
            $0.signInAllowance = .init(burst: 1, perSecond: 0.5)
            $0.clock = TestClock().clock
        }) { server in
            _ = try await server.signIn(code: "2222-2222-2222")
            #expect(try await server.signIn(token: "a.b.c").status == 429)
        }
    }

    @Test func `a device that was signed in for a time must bring another token then`()
        async throws
    {
        let clock = TestClock(uptime: ServerClock.system.uptime)
        try await withProvider(credentialSeconds: 60, clock: clock.clock) { server in
            let token = provider.token(provider.claims("u1"))
            let device = try await server.signIn(token: token).message(WireSignInAnswer.self)
            func status() async throws -> RunningServer.Answer {
                try await server.send("GET", "/v1/account", credential: device.credential)
            }
            #expect(try await status().status == 200)
            clock.advance(seconds: 61)
            #expect(try await status().problem.code == "credential-expired")
            let again = try await server.signIn(token: token).message(WireSignInAnswer.self)
            #expect(again.account == device.account)
        }
    }

    @Test func `of a key set that has other kinds of keys too, the usable ones are used`()
        async throws
    {
        let odd: [[String: String]] = [
            ["kty": "oct", "k": "c2VjcmV0", "kid": "secret"], ["kty": "AKP", "kid": "later"], [:],
            ["kty": "EC", "crv": "P-256", "kid": "broken"],
        ]
        let keySet = provider.keySet(odd + [provider.key(.ES256)])
        try await withProvider(keySet: keySet) { server in
            let claims = provider.claims("u1")
            #expect(try await server.signIn(token: provider.token(claims)).status == 200)
            for name in ["secret", "later", "broken"] {
                let header = ["alg": "ES256", "kid": name]
                try await expectRefused(provider.token(claims, header: header), by: server)
            }
        }
    }

    @Test func `with an unusable key set, the client is asked to try again`() async throws {
        for keySet in Self.unusableKeySets {
            try await withProvider { server in
                try keySet.write(
                    toFile: server.folder.file("keys.json"), atomically: true, encoding: .utf8)
                let answer = try await server.signIn(
                    token: provider.token(provider.claims("u1")))
                #expect(answer.status == 503)
                #expect(answer.headers["retry-after"] != nil)
            }
        }
    }

    private static let unusableKeySets = [
        "", "{}", "[]", #"{"keys": []}"#, #"{"keys": [{"kty": "oct"}]}"#,
    ]

    @Test func `a server does not start with a file of keys that cannot be used`() async throws {
        for keySet in Self.unusableKeySets {
            await #expect(throws: ServerStartError.self) {
                try await withProvider(keySet: keySet) { _ in }
            }
        }
    }

    @Test func `keys are requested by address, and again for a new key`() async throws {
        let site = try await TestKeySite.start(provider.keySet([provider.key(.RS256)]))
        let clock = TestClock()
        try await withServer({
            $0.clock = clock.clock
            $0.identity = IdentitySettings(
                rule: IdentityRule(issuer: provider.issuer, audiences: ["app"]),
                keys: .address(site.address))
        }) { server in
            let (old, new) = (
                provider.token(provider.claims("u1"), .RS256), provider.token(provider.claims("u1"))
            )
            #expect(try await server.signIn(token: old).status == 200)
            #expect(try await server.signIn(token: old).status == 200)
            #expect(site.requests == 1)
            site.content = provider.keySet
            try await expectRefused(new, by: server)
            #expect(site.requests == 1)
            clock.advance(seconds: 60)
            #expect(try await server.signIn(token: new).status == 200)
            #expect(site.requests == 2)
            // The provider is away, and its keys are good for a day.
            site.content = nil
            clock.advance(seconds: 3_600)
            #expect(try await server.signIn(token: fresh(clock)).status == 200)
            #expect(site.requests == 3)
            clock.advance(seconds: 86_400)
            #expect(try await server.signIn(token: fresh(clock)).status == 503)
        }
        try await site.stop()
    }

    private func fresh(_ clock: TestClock) -> String {
        var claims = provider.claims("u1")
        claims["exp"] = Double(clock.now) / 1_000 + 60
        return provider.token(claims)
    }
}

extension RunningServer {
    func signIn(token: String, name: String = "laptop") async throws -> Answer {
        var signIn = WireSignIn()
        signIn.deviceName = name
        return try await send("POST", "/v1/sign-in", credential: token, signIn)
    }
}
