// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

extension EndToEndTests {
    /// A person adds devices, and takes them away, without the operator.
    @Suite struct PairingTests {
        @Test func `a device makes a code for another one, and the owner renames and removes it`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let phone = stage.path("phone")
                let code = try await UbiquityAccount.pair(
                    stores: ["TEAM.app"], validFor: .seconds(3_600), home: laptop)
                #expect(code.server == server.url && code.link == "\(server.url)#\(code.code)")
                #expect(code.expires > Date())
                let account = try await UbiquityAccount.signIn(
                    server: code.server, code: code.code, deviceName: "phone", home: phone)
                #expect(account.name == "ada")
                let devices = try await UbiquityAccount.devices(home: laptop)
                #expect(devices.map(\.name) == ["laptop", "phone"])
                #expect(devices.map(\.isThisDevice) == [true, false])
                #expect(devices[1].stores == ["TEAM.app"] && devices[1].expires != nil)
                let renamed = try await UbiquityAccount.renameDevice(
                    devices[1].id, to: "my phone", home: laptop)
                #expect(renamed.name == "my phone")
                // A confined device passes on what it has, and sees no others.
                let more = try await UbiquityAccount.pair(home: phone)
                try await UbiquityAccount.signIn(
                    server: server.url, code: more.code, home: stage.path("watch"))
                let error = await #expect(throws: UbiquityError.self) {
                    try await UbiquityAccount.pair(stores: ["TEAM.other"], home: phone)
                }
                #expect(error?.code == .refused)
                let own = await #expect(throws: UbiquityError.self) {
                    try await UbiquityAccount.signOutDevice(devices[0].id, home: laptop)
                }
                #expect(own?.code == .invalid)
                // What it has added ends with it.
                #expect(try await UbiquityAccount.devices(home: laptop).count == 3)
                try await UbiquityAccount.signOutDevice(devices[1].id, home: laptop)
                #expect(try await UbiquityAccount.devices(home: laptop).map(\.name) == ["laptop"])
                let another = try await UbiquityAccount.pair(stores: ["TEAM.app"], home: laptop)
                try await UbiquityAccount.signIn(
                    server: server.url, code: another.code, home: stage.path("tablet"))
                let gone = try await UbiquityAccount.signOutOtherDevices(home: laptop)
                #expect(gone.count == 1 && gone[0].stores == ["TEAM.app"])
                #expect(try await UbiquityAccount.devices(home: laptop).map(\.name) == ["laptop"])
            }
        }

        @Test func `a device asks to be signed in, and another one decides`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let phone = stage.path("phone")
                let pending = try await UbiquityAccount.requestSignIn(
                    server: server.url, deviceName: "phone", stores: ["TEAM.app"], home: phone)
                #expect(pending.link == "\(server.url)#\(pending.userCode)")
                var waiting = try await UbiquityAccount.waitingDevice(
                    userCode: pending.wholeCode.lowercased(), home: laptop)
                #expect(waiting.name == "phone" && waiting.address == "127.0.0.1")
                #expect(waiting.stores == ["TEAM.app"] && waiting.validFor == nil)
                waiting.validFor = .seconds(3_600)
                try await UbiquityAccount.approve(waiting, home: laptop)
                let account = try await pending.account()
                #expect(account.name == "ada" && account.deviceName == "phone")
                #expect(try UbiquityAccount.current(home: phone) == account)
                let device = try await UbiquityAccount.devices(home: laptop)[1]
                #expect(device.stores == ["TEAM.app"] && device.expires != nil)

                let stranger = try await UbiquityAccount.requestSignIn(
                    server: server.url, deviceName: "stranger", home: stage.path("stranger"))
                try await UbiquityAccount.deny(
                    UbiquityAccount.waitingDevice(userCode: stranger.userCode, home: laptop),
                    home: laptop)
                let denied = await #expect(throws: UbiquityError.self) {
                    try await stranger.account()
                }
                #expect(denied?.code == .refused)
                #expect(try UbiquityAccount.current(home: stage.path("stranger")) == nil)
                let unknown = await #expect(throws: UbiquityError.self) {
                    try await UbiquityAccount.waitingDevice(
                        userCode: stranger.userCode, home: laptop)
                }
                #expect(unknown?.code == .refused)
            }
        }

        @Test func `a code is used at once for a device of this machine`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let (laptop, phone) = (stage.path("laptop"), stage.path("phone"))
                // The server does not know its port beforehand.
                let own = ["UBIQUITY_HOME": laptop]
                func create(_ name: String) -> [String] {
                    [
                        "account", "create", name, "--data", server.data, "--server", server.url,
                        "--sign-in", "--device-name", "laptop",
                    ]
                }
                let made = try await stage.succeed(create("ada"), environment: own)
                #expect(made.hasPrefix("Signed in to ada at \(server.url) as laptop ("))
                #expect(made.split(separator: "\n").count == 1)
                let paired = try await stage.succeed(
                    ["pair", "--sign-in", "--home", phone, "--device-name", "phone"],
                    environment: own)
                #expect(paired.hasPrefix("Signed in to ada at \(server.url) as phone ("))
                let devices = try await UbiquityAccount.devices(home: phone)
                #expect(devices.map(\.name) == ["laptop", "phone"])

                // Nothing is made that could not be used.
                let signedIn = try await stage.run(create("eve"), environment: own)
                complains(signedIn, 64, "already signed in to ada")
                let unwritable = try await stage.run(
                    create("eve"), environment: ["UBIQUITY_HOME": "/proc/ubiquity"])
                complains(unwritable, 74, "/proc/ubiquity cannot be written")
                let again = try await stage.run(
                    ["pair", "--sign-in", "--home", phone], environment: own)
                complains(again, 64, "already signed in to ada")
                let list = try await stage.succeed("account", "list", "--data", server.data)
                #expect(!list.contains("eve"))
                complains(
                    try await stage.run(["pair", "--sign-in"], environment: own), 64,
                    "--home FOLDER")
                complains(
                    try await stage.run(
                        ["account", "create", "eve", "--data", server.data, "--home", phone]), 64,
                    "without --sign-in")
            }
        }

        @Test func `a sign-in that fails shows the code, and makes none where it cannot succeed`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let home = stage.path("laptop")
                func create(_ name: String, at address: String) async throws -> ProgramRun {
                    try await stage.run([
                        "account", "create", name, "--data", server.data, "--server", address,
                        "--sign-in", "--home", home,
                    ])
                }
                let failed = try await create("ada", at: "http://127.0.0.1:1")
                #expect(failed.status == 69 && failed.output.isEmpty)
                let command = try #require(
                    failed.errors.firstMatch(
                        of: /(?m)^    ubiquity sign-in --server=\S+:1 --code=(?<code>\S+)/
                    )
                )
                #expect(failed.errors.contains("`ubiquity account code ada` makes another"))
                try await stage.succeed(
                    "sign-in", "--server", server.url, "--code", String(command.code), "--home",
                    home)
                // A folder that cannot be written to: a file is in its place.
                try Data().write(to: URL(fileURLWithPath: stage.path("file")))
                let refused = try await stage.run([
                    "account", "create", "eve", "--data", server.data, "--server", server.url,
                    "--sign-in", "--home", stage.path("file/phone"),
                ])
                #expect(refused.status != 0 && refused.errors.contains("cannot be written"))
                let plain = try await stage.run([
                    "account", "create", "eve", "--data", server.data, "--server",
                    "http://192.0.2.1:7717", "--sign-in", "--home", stage.path("phone"),
                ])
                #expect(plain.status == 64 && plain.errors.contains("plain HTTP"))
                let list = try await stage.succeed("account", "list", "--data", server.data)
                #expect(list.contains("ada") && !list.contains("eve"))
            }
        }

        @Test func `a code that only this machine can use comes with the way out`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let made = try await stage.succeed(
                    "account", "create", "ada", "--data", server.data)
                #expect(made.contains("ubiquity serve --lan"))
                #expect(made.contains("lan = true"))
                let home = try await server.newHome("laptop")
                let paired = try await stage.succeed("pair", "--home", home)
                #expect(paired.contains("Only this machine can use that address."))
                let elsewhere = try await stage.succeed(
                    "account", "code", "ada", "--data", server.data, "--server",
                    "https://ubiquity.example")
                #expect(!elsewhere.contains("serve --lan"))
                let plain = try await stage.succeed(
                    "account", "code", "ada", "--data", server.data, "--server",
                    "http://192.168.1.2:7717")
                #expect(plain.contains("it is plain HTTP"))
            }
        }

        @Test func `the commands pair devices by a link, and by an approval`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let made = try await stage.succeed("pair", "--home", laptop, "--json")
                let link = try #require(
                    made.firstMatch(of: /"link":"(?<link>[^"]+)"/)?.link.replacing("\\/", with: "/")
                )
                let tablet = try await stage.succeed(
                    "sign-in", String(link), "--home", stage.path("tablet"), "--device-name", "tab")
                #expect(tablet.hasPrefix("Signed in to ada"))
                let again = try await stage.run(
                    "sign-in", String(link), "--home", stage.path("again"))
                #expect(again.status == 77)

                let child = try stage.start([
                    "sign-in", "--server", server.url, "--home", stage.path("phone"),
                    "--device-name", "phone", "--for", "30d",
                ])
                try await until("the code") { child.errors.contains("Waiting until") }
                let code = try #require(
                    child.errors.firstMatch(of: /ubiquity approve (?<code>[0-9A-Z]{4}-[0-9A-Z]{4})/)
                ).code
                let whole = try #require(
                    child.errors.firstMatch(of: /(?m)^ +(?<code>ubiquity:\S+)$/)
                ).code
                let unasked = try await stage.run("approve", String(code), "--home", laptop)
                #expect(unasked.status == 64 && unasked.errors.contains("--yes"))
                let approved = try await stage.run(
                    "approve", String(whole), "--home", laptop, "--yes")
                #expect(approved.errors.contains("other users of this machine can see"))
                #expect(approved.status == 0, "\(approved.errors)")
                #expect(approved.errors.contains("Name     phone"))
                #expect(approved.errors.contains("see the code \(code) on a device"))
                #expect(approved.errors.contains("all stores, for 30 days"))
                #expect(try await child.exit() == 0)
                #expect(child.output.hasPrefix("Signed in to ada"))
                #expect(child.output.contains("The account is not sealed: whoever"))
                // By the short code, only the server says so, and nobody has confirmed it.
                let (third, asking) = (stage.path("third"), ["sign-in", "--server", server.url])
                for (more, status) in [([], Int32(64)), (["--yes"], 0)] {
                    let child = try stage.start(asking + ["--home", third] + more)
                    try await until("the code") { child.errors.contains("Waiting until") }
                    let code = try #require(
                        child.errors.firstMatch(of: /ubiquity approve (?<code>[0-9A-Z-]{9})/)
                    ).code
                    let approved = try await stage.run(
                        "approve", "\(server.url)#\(code)", "--home", laptop, "--yes")
                    #expect(approved.status == 0 && approved.errors.contains("asks whether"))
                    #expect(try await child.exit() == status, "\(child.lastWords)")
                    #expect(try DeviceHome(path: third).load().signedIn == nil || status == 0)
                    #expect(status == 0 || child.errors.contains("No device of the account has"))
                    #expect(status != 0 || child.output.contains("according to its server"))
                }
                let elsewhere = try await stage.run(
                    "approve", "http://127.0.0.1:1#\(code)", "--home", laptop, "--yes")
                #expect(elsewhere.status == 65)

                let gone = try await stage.succeed(
                    "device", "revoke", "--others", "--yes", "--home", laptop)
                #expect(gone.contains("Signed out tab") && gone.contains("Signed out phone"))
                let audit = try await stage.succeed("audit", "--data", server.data)
                #expect(audit.contains("sign-in-approved"), "\(audit)")
            }
        }

        @Test func `what is set on a new device stands against what the account had`() async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await stage.succeed(
                    "set", "theme", "light", "--home", laptop, "--store", "TEAM.app")
                let phone = try await server.newHome("phone")
                try await stage.succeed(
                    "set", "theme", "dark", "--home", phone, "--store", "TEAM.app")
                let seen = try await stage.succeed(
                    "get", "theme", "--home", laptop, "--store", "TEAM.app")
                #expect(seen == "dark\n")
            }
        }

        @Test func `the operator approves for an account`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                _ = try await server.newCode(isFirst: true)
                let pending = try await UbiquityAccount.requestSignIn(
                    server: server.url, deviceName: "phone", allowsUnsealed: true,
                    home: stage.path("phone"))
                let unknown = try await stage.run(
                    "approve", pending.userCode, "--account", "eve", "--data", server.data, "--yes")
                #expect(unknown.status == 1)
                let approved = try await stage.succeed(
                    "approve", pending.userCode, "--account", "ada", "--data", server.data,
                    "--yes", "--store", "TEAM.app", "--json")
                #expect(approved.contains(#""approved":true"#))
                #expect(try await pending.account().name == "ada")
            }
        }

        @Test(arguments: UbiquityFirstSync.Choice.allCases)
        func `a first sign-in shows what differs, and keeps what the person chooses`(
            choice: UbiquityFirstSync.Choice
        ) async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try Device(home: try await server.newHome("laptop", isFirst: true))
                defer { laptop.close() }
                let home = stage.path("phone")
                let before = try Device(home: home)
                before.store.set("here", forKey: "old")
                before.store.set("same", forKey: "same")
                before.store.set("1", forKey: "only here")
                #expect(before.store.synchronize())
                laptop.store.set("there", forKey: "old")
                laptop.store.set("there", forKey: "new")
                laptop.store.set("same", forKey: "same")
                laptop.store.set("1", forKey: "only there")
                try await laptop.store.synchronizeNow()
                before.store.set("here", forKey: "new")
                #expect(before.store.synchronize())
                before.close()

                struct Refusal: Error {}
                let code = try await server.newCode(isFirst: false)
                await #expect(throws: Refusal.self) {
                    try await UbiquityAccount.signIn(
                        server: server.url, code: code, home: home,
                        keeping: { _ in throw Refusal() })
                }
                #expect(try UbiquityAccount.current(home: home) == nil)
                let next = try await server.newCode(isFirst: false)
                try await UbiquityAccount.signIn(server: server.url, code: next, home: home) {
                    preview in
                    #expect(preview.stores.map(\.identifier) == [Device.identifier])
                    #expect(preview.stores.first?.different == ["new", "old"])
                    #expect(preview.stores.first?.onlyHere == ["only here"])
                    #expect(preview.stores.first?.onlyOnServer == ["only there"])
                    return choice
                }
                let phone = try Device(home: home)
                defer { phone.close() }
                try await agreement(laptop, phone) { $0.count == 5 }
                let kept = ["old", "new"].map { phone.texts[$0] }
                #expect(kept == ["old", "new"].map { laptop.texts[$0] })
                switch choice {
                case .server: #expect(kept == ["there", "there"])
                case .device: #expect(kept == ["here", "here"])
                // Which one is newer depends on two clocks, which a busy machine sets apart.
                case .newest: #expect(kept.allSatisfy { ["there", "here"].contains($0) })
                }
                #expect(
                    ["same", "only here", "only there"].map { laptop.texts[$0] } == [
                        "same", "1", "1",
                    ])
            }
        }
    }
}
