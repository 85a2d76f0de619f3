// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import ProcessHarness
internal import Synchronization
internal import Testing
internal import Ubiquity
internal import UbiquityCore

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension EndToEndTests {
    /// A person seals the account, and gives devices the key, with the real programs.
    @Suite struct EncryptionTests {
        private static let store = ["--store", Device.identifier]

        /// - Returns: The recovery key.
        @discardableResult
        private func seal(_ home: String, on stage: Stage) async throws -> String {
            let (run, key) = try await stage.confirming("encryption", "on", "--yes", "--home", home)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.output.hasPrefix("The account is sealed, and so are all"))
            #expect(!run.output.contains(key))
            return key
        }

        private func set(
            _ key: String, _ value: String, _ home: String, _ stage: Stage
        ) async throws {
            try await stage.succeed(["set", key, value, "--home", home] + Self.store)
        }

        private func get(_ key: String, _ home: String, _ stage: Stage) async throws -> String {
            try await stage.succeed(["get", key, "--home", home] + Self.store)
                .trimmingCharacters(in: .newlines)
        }

        private func sync(_ home: String, _ stage: Stage) async throws -> ProgramRun {
            try await stage.run(["sync", "--home", home] + Self.store)
        }

        /// The code by which a device of the account is signed in.
        private func pair(
            _ home: String, _ options: [String] = [], on stage: Stage
        ) async throws -> String {
            let made = try await stage.succeed(["pair", "--home", home, "--json"] + options)
            let link = try #require(made.firstMatch(of: /"link":"(?<link>[^"]+)"/)).link
            return String(link).replacing("\\/", with: "/")
        }

        /// Starts a command that shows a code, and waits for it.
        private func showing(
            _ arguments: [String], on stage: Stage
        ) async throws -> (child: ChildProcess, code: String) {
            let child = try stage.start(arguments)
            try await until("the code") {
                !child.isRunning || child.errors.contains("Waiting ")
            }
            let match = child.errors.firstMatch(of: /(?m)^ +(?<code>ubiquity:\S+)$/)
            return (child, String(try #require(match, "\(child.lastWords)").code))
        }

        /// Runs a command that asks for a code, and gives it one.
        private func typing(
            _ code: String, to arguments: [String], on stage: Stage
        ) async throws -> Stage.Typed {
            let input = Pipe()
            let child = try stage.start(arguments, input: input)
            return try await Stage.Typed(code, to: child, input)
        }

        private func unlock(_ home: String, with other: String, on stage: Stage) async throws {
            let (child, code) = try await showing(["unlock", "--home", home], on: stage)
            let given = try await typing(
                code, to: ["approve", "--yes", "--home", other], on: stage)
            #expect(given.status == 0, "\(given.errors)")
            #expect(try await child.exit() == 0, "\(child.lastWords)")
            #expect(child.output == "This device has the account's key now.\n")
        }

        private func recover(
            _ home: String, with key: String, on stage: Stage
        ) async throws -> Stage.Typed {
            let input = Pipe()
            let child = try stage.start(["unlock", "--recovery", "--home", home], input: input)
            try input.fileHandleForWriting.write(contentsOf: Data("\(key)\n".utf8))
            try input.fileHandleForWriting.close()
            return try await Stage.Typed(child)
        }

        private func keyring(_ home: String) throws -> Keyring? {
            try DeviceHome(path: home).load().keyring
        }

        // MARK: - Keys

        @Test func `an account is sealed, and a code brings a device the key`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let phone = stage.path("phone")
                try await set("before", "1", laptop, stage)
                let unsealed = try await stage.succeed("encryption", "status", "--home", laptop)
                #expect(unsealed.contains("`ubiquity encryption on` seals it"))
                #expect(try await !pair(laptop, on: stage).hasPrefix("ubiquity:"))
                let typed = try stage.start(
                    ["encryption", "on", "--yes", "--home", laptop], input: nil)
                #expect(try await typed.exit() == 1)
                #expect(typed.errors.contains("nothing was changed"))
                try await seal(laptop, on: stage)
                let again = try await stage.succeed(
                    "encryption", "on", "--home", laptop, "--json")
                #expect(
                    again.contains(#""sealed":true,"#)
                        && again.contains(#","hasKey":true,"unsealed":[]"#))
                let list = try await stage.succeed("account", "list", "--data", server.data)
                #expect(list.contains("yes"))

                let code = try await pair(laptop, on: stage)
                #expect(code.hasPrefix("ubiquity:\(server.url)#"))
                var mistyped = code
                mistyped.removeLast()
                complains(
                    try await stage.run("sign-in", mistyped, "--home", phone), 64, "mistyped")
                let signedIn = try await typing(code, to: ["sign-in", "--home", phone], on: stage)
                #expect(signedIn.output.contains("this device has its key"), "\(signedIn.errors)")
                #expect(try await get("before", phone, stage) == "1")
                try await set("after", "2", phone, stage)
                #expect(try await get("after", laptop, stage) == "2")
                let watch = stage.path("watch")
                let own = try await stage.succeed(
                    ["pair", "--sign-in", "--home", watch], environment: ["UBIQUITY_HOME": laptop])
                #expect(own.contains("this device has its key"))
                #expect(try await get("after", watch, stage) == "2")
                let revoked = try await stage.run(
                    "device", "revoke", "--others", "--yes", "--home", laptop)
                #expect(revoked.errors.contains("`ubiquity encryption rotate`"))
                // The code was used, and its keys are for nobody else.
                let third = try await stage.run("sign-in", code, "--home", stage.path("third"))
                #expect(third.status == 77)
            }
        }

        @Test func `a code is repeated by no error, and none is shown as a command's argument`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await seal(laptop, on: stage)
                let shown = try await stage.succeed("pair", "--home", laptop)
                let match = try #require(shown.firstMatch(of: /(?m)^ +(?<code>ubiquity:\S+)$/))
                let code = String(match.code)
                #expect(!shown.contains("sign-in '") && !shown.contains("sign-in ubiquity:"))
                let secret = try #require(KeyCode(code)?.secret).text
                let front = try #require(KeyCode(code)).front
                let phone = ["--home", stage.path("phone")]
                for damaged in [
                    code.dropLast(4) + "UUUU", "ubiquity:" + secret, "ubiquity:\(secret);\(front)",
                    "ubiquity:a;\(secret)",
                ] {
                    for words in [
                        ["sign-in", String(damaged)] + phone,
                        ["sign-in", "--server", server.url, "--code", String(damaged)] + phone,
                        ["sign-in", "a#b", String(damaged)] + phone, [String(damaged)],
                        ["approve", String(damaged), "--home", laptop, "--json"],
                        ["approve", "a", String(damaged), "--home", laptop],
                    ] {
                        let run = try await stage.run(words)
                        #expect(run.status != 0 && !run.errors.isEmpty, "\(words)")
                        #expect(!(run.errors + run.output).contains(secret.prefix(9)), "\(run)")
                    }
                    let typed = try await typing(
                        String(damaged), to: ["sign-in"] + phone, on: stage)
                    #expect(typed.status == 65 && !typed.errors.contains(secret.prefix(9)))
                }
                // Without its beginning, it is not sent to the server either.
                let cut = try await stage.run(
                    "approve", "7KQ2-M9XD;\(secret)", "--yes", "--home", laptop)
                #expect(cut.status == 1 && !cut.errors.contains(secret.prefix(9)), "\(cut)")
                try await stage.succeed(["sign-in", code] + phone)
            }
        }

        @Test
        func `of two terminals that seal an account at once, one says that its key is of no use`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await set("a", "1", laptop, stage)
                for command in ["on", "rotate"] {
                    let inputs = [Pipe(), Pipe()]
                    let children = try inputs.map { input in
                        try stage.start(
                            ["encryption", command, "--yes", "--home", laptop], input: input)
                    }
                    var keys: [String] = []
                    for child in children { keys.append(try await child.recoveryKey()) }
                    #expect(keys[0] != keys[1])
                    let first = try await Stage.Typed(keys[0], to: children[0], inputs[0])
                    #expect(first.status == 0, "\(first.errors)")
                    let second = try await Stage.Typed(keys[1], to: children[1], inputs[1])
                    #expect(second.status != 0 && second.errors.contains("is of no use"))
                    let fresh = try await server.newHome(command)
                    #expect(try await recover(fresh, with: keys[1], on: stage).status == 1)
                    #expect(try await recover(fresh, with: keys[0], on: stage).status == 0)
                    #expect(try await get("a", fresh, stage) == "1")
                    #expect(try keyring(fresh) == keyring(laptop))
                }
            }
        }

        @Test func `a rotation that is given up has changed nothing`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await set("a", "1", laptop, stage)
                for command in ["on", "rotate"] {
                    let before = try DeviceHome(path: laptop).load()
                    let input = Pipe()
                    let child = try stage.start(
                        ["encryption", command, "--yes", "--home", laptop], input: input)
                    _ = try await child.recoveryKey()
                    try input.fileHandleForWriting.close()
                    #expect(try await child.exit() == 1)
                    #expect(child.errors.contains("nothing was changed"))
                    #expect(try DeviceHome(path: laptop).load() == before)
                    if command == "on" { try await seal(laptop, on: stage) }
                }
            }
        }

        @Test func `a server that denies that an account is sealed gets no device to believe it`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let home = try DeviceHome(path: laptop)
                // The laptop has a key, of which the server knows nothing.
                try home.update { try $0.keep(Keyring([7: .account(.random())])) }
                let phone = stage.path("phone")
                let code = try await pair(laptop, on: stage)
                #expect(code.hasPrefix("ubiquity:"))
                let refused = try await stage.run("sign-in", code, "--home", phone)
                #expect(refused.status == 77 && refused.errors.contains("not the ones"))
                let (child, whole) = try await showing(
                    ["sign-in", "--server", server.url, "--home", phone], on: stage)
                try await stage.succeed("approve", whole, "--yes", "--home", laptop)
                #expect(try await child.exit() == 77, "\(child.lastWords)")
                #expect(try DeviceHome(path: phone).load().signedIn == nil)
                let status = try await stage.run("encryption", "status", "--home", laptop)
                #expect(
                    status.status == 77
                        && status.errors.contains("`ubiquity encryption on` gives it"))
            }
        }

        @Test func `a device is approved with the key, or locked until it is unlocked`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await seal(laptop, on: stage)
                try await set("a", "1", laptop, stage)
                let tablet = stage.path("tablet")
                let asks = ["sign-in", "--server", server.url, "--home"]
                let (child, code) = try await showing(asks + [tablet], on: stage)
                let approved = try await stage.succeed(
                    "approve", code, "--yes", "--home", laptop)
                #expect(approved.contains("It gets the account's key."))
                #expect(try await child.exit() == 0, "\(child.lastWords)")
                #expect(child.output.contains("this device has its key"))
                #expect(try await get("a", tablet, stage) == "1")

                let watch = stage.path("watch")
                let (other, whole) = try await showing(asks + [watch], on: stage)
                let front = try #require(KeyCode(whole)).front
                let without = try await stage.run("approve", front, "--yes", "--home", laptop)
                #expect(without.status == 0, "\(without.errors)")
                #expect(without.errors.contains("is locked until you run `ubiquity unlock`"))
                #expect(try await other.exit() == 0)
                #expect(other.output.contains("`ubiquity unlock` gets it"))
                let refused = try await sync(watch, stage)
                #expect(refused.status == 77 && refused.errors.contains("unlock"), "\(refused)")
                let status = try await stage.succeed("status", "--home", watch)
                #expect(status.contains("does not have its key: `ubiquity unlock` gets it."))
                let doctor = try await stage.run("doctor", "--home", watch)
                #expect(doctor.status == 1 && doctor.output.contains("`ubiquity unlock` gets it"))
                let locked = try await stage.run("pair", "--home", watch)
                #expect(locked.output.contains("so the new one is locked, too"))
                #expect(!locked.output.contains("brings the account's key"))
                // The server cannot start another device in clear by what this one says.
                let next = try await pair(watch, on: stage)
                #expect(next.hasPrefix("ubiquity:"))
                let glasses = try await stage.succeed(
                    "sign-in", next, "--home", stage.path("glasses"))
                #expect(glasses.contains("`ubiquity unlock` gets it"))
                _ = try await stage.run(["set", "b", "2", "--home", watch] + Self.store)
                try await unlock(watch, with: tablet, on: stage)
                #expect(try await sync(watch, stage).status == 0)
                #expect(try await get("a", watch, stage) == "1")
                #expect(try await get("b", laptop, stage) == "2")
                let sound = try await stage.run("doctor", "--home", watch)
                #expect(sound.output.contains("this device has its key"), "\(sound.output)")
            }
        }

        @Test func `an app brings the key by what is scanned, and unlocks a locked device`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let recovery = try await seal(laptop, on: stage)
                try await set("a", "1", laptop, stage)

                let pairing = try await UbiquityAccount.pair(home: laptop)
                #expect(pairing.link == "\(server.url)#\(pairing.code)")
                #expect(pairing.wholeCode.hasPrefix("ubiquity:\(pairing.link);"))
                let phone = stage.path("phone")
                try await UbiquityAccount.signIn(code: " \(pairing.wholeCode)\n", home: phone)
                #expect(try await get("a", phone, stage) == "1")

                // What is in the code, and what is given besides.
                let desk = stage.path("desk")
                try await stage.succeed(
                    "sign-in", "--server", server.url, "--code",
                    UbiquityAccount.pair(home: laptop).wholeCode, "--home", desk)
                #expect(try await get("a", desk, stage) == "1")

                let tablet = stage.path("tablet")
                let pending = try await UbiquityAccount.requestSignIn(
                    server: server.url, stores: [Device.identifier], home: tablet)
                let waiting = try await UbiquityAccount.waitingDevice(
                    userCode: pending.wholeCode, home: phone)
                try await UbiquityAccount.approve(waiting, home: phone)
                _ = try await pending.account()
                #expect(try await get("a", tablet, stage) == "1")
                #expect(try keyring(tablet)?.check == nil)

                // Without the secret, it is locked.
                let watch = stage.path("watch")
                try await UbiquityAccount.signIn(
                    server: server.url, code: UbiquityAccount.pair(home: laptop).code, home: watch)
                #expect(try await sync(watch, stage).status == 77)
                let code = try await UbiquityAccount.unlockCode(home: watch)
                async let unlocked: Void = UbiquityAccount.unlock(code: code, home: watch)
                try await UbiquityAccount.handOver(code: code, home: laptop)
                try await unlocked
                #expect(try await get("a", watch, stage) == "1")

                let last = try await server.newHome("last")
                let other = RecoveryKey.random().text
                for wrong in [
                    "7KQ2-M9XD-4TRW", "ubiquity:unlock;7KQ2", "", other, pairing.wholeCode,
                ] {
                    let error = await #expect(throws: UbiquityError.self) {
                        try await UbiquityAccount.unlock(code: wrong, home: last)
                    }
                    #expect(error?.code == .refused)
                }
                try await UbiquityAccount.unlock(code: recovery, home: last)
                #expect(try await get("a", last, stage) == "1")
                // A code of a locked device, and nothing that this one cannot give.
                let secret = HandoverSecret.random()
                let others = KeyCode(front: "unlock#TEAM.other", secret: secret).text
                for (wrong, home) in [
                    (pairing.wholeCode, laptop), ("7KQ2-M9XD-4TRW", laptop), (others, tablet),
                ] {
                    let error = await #expect(throws: UbiquityError.self) {
                        try await UbiquityAccount.handOver(code: wrong, home: home)
                    }
                    #expect(error?.code == .refused)
                }
                // A secret in the wrong place goes to no server.
                for wrong in [recovery, secret.text] {
                    for ask: @Sendable () async throws -> Void in [
                        { try await UbiquityAccount.signIn(server: server.url, code: wrong) },
                        {
                            _ = try await UbiquityAccount.waitingDevice(
                                userCode: wrong, home: laptop)
                        },
                    ] {
                        let error = await #expect(throws: UbiquityError.self) { try await ask() }
                        #expect(error?.description == "\(KeyringRefusal.secretAlone)")
                    }
                    let typed = try await stage.run(
                        "sign-in", "--server", server.url, "--code", wrong, "--home",
                        stage.path("wrong"))
                    #expect(typed.status == 64 && !typed.errors.contains(wrong))
                }
            }
        }

        @Test func `a rotation locks the other devices, and the old recovery key is of no use`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await set("a", "1", laptop, stage)
                let first = try await seal(laptop, on: stage)
                let phone = stage.path("phone")
                try await stage.succeed("sign-in", pair(laptop, on: stage), "--home", phone)
                #expect(try await get("a", phone, stage) == "1")
                let (run, second) = try await stage.confirming(
                    "encryption", "rotate", "--yes", "--home", laptop)
                #expect(run.status == 0, "\(run.errors)")
                #expect(run.output.hasPrefix("The account is sealed, and so are all"))
                #expect(first != second)
                #expect(run.errors.contains("The recovery key from before is void"))
                let refused = try await sync(phone, stage)
                #expect(refused.status == 77 && refused.errors.contains("ubiquity unlock"))
                try await set("a", "2", laptop, stage)
                try await unlock(phone, with: laptop, on: stage)
                #expect(try await sync(phone, stage).status == 0)
                #expect(try await get("a", phone, stage) == "2")

                let fresh = try await server.newHome("fresh")
                let old = try await recover(fresh, with: first, on: stage)
                #expect(old.status == 1 && old.errors.contains("it is an older one"), "\(old)")
                let exchanged = second.dropFirst(2).prefix(1) + second.dropFirst(1).prefix(1)
                let mistyped = second.prefix(1) + exchanged + second.dropFirst(3)
                let wrong = try await recover(
                    fresh, with: mistyped == second ? "0" + second.dropFirst() : String(mistyped),
                    on: stage)
                #expect(wrong.status == 1 && wrong.errors.contains("mistyped"), "\(wrong)")
                #expect(try keyring(fresh) == nil)
                let recovered = try await recover(fresh, with: second.lowercased(), on: stage)
                #expect(recovered.status == 0, "\(recovered.errors)")
                #expect(try await get("a", fresh, stage) == "2")
                // Another one for the same key.
                let (made, third) = try await stage.confirming(
                    "encryption", "recovery", "--new", "--home", laptop)
                #expect(made.status == 0 && third != second, "\(made.errors)")
                #expect(made.output.contains("`ubiquity encryption rotate`"))
            }
        }

        @Test func `a confined device gets the keys of its stores, and no others`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await seal(laptop, on: stage)
                try await set("a", "1", laptop, stage)
                let guest = stage.path("guest")
                let code = try await pair(laptop, Self.store, on: stage)
                try await stage.succeed("sign-in", code, "--home", guest)
                #expect(try await get("a", guest, stage) == "1")
                let store = try StoreIdentifier(Device.identifier)
                #expect(try keyring(guest) == keyring(laptop)?.confined(to: [store]))
                let seals = try await stage.run(
                    "encryption", "rotate", "--yes", "--home", guest)
                #expect(seals.status == 77 && seals.errors.contains("some stores only"))
                let (run, _) = try await stage.confirming(
                    "encryption", "rotate", "--yes", "--home", laptop)
                #expect(run.status == 0, "\(run.errors)")
                try await unlock(guest, with: laptop, on: stage)
                #expect(try keyring(guest) == keyring(laptop)?.confined(to: [store]))
                try await set("a", "2", guest, stage)
                #expect(try await get("a", laptop, stage) == "2")
            }
        }

        @Test func `a reset removes all values, and devices with the key send nothing`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let unsealed = try await stage.run(
                    "encryption", "reset", "--yes", "--home", laptop)
                complains(unsealed, 1, "the account is not sealed")
                try await seal(laptop, on: stage)
                try await set("a", "1", laptop, stage)
                let phone = stage.path("phone")
                try await stage.succeed("sign-in", pair(laptop, on: stage), "--home", phone)
                #expect(try await get("a", phone, stage) == "1")
                let locked = try await server.newHome("locked")
                _ = try await stage.run(["set", "c", "3", "--home", locked] + Self.store)
                let unasked = try await stage.run("encryption", "reset", "--home", laptop)
                #expect(unasked.status == 64)
                try await stage.succeed("encryption", "reset", "--yes", "--home", laptop)
                for home in [laptop, phone] {
                    let other = try await stage.run("encryption", "status", "--home", home)
                    #expect(other.status == 77 && other.errors.contains("`ubiquity sign-out`"))
                    #expect(try await sync(home, stage).status == 77)
                    #expect(try await get("a", home, stage) == "1")
                }
                try await stage.succeed("sign-out", "--wipe", "--home", phone)
                let code = try await server.newCode()
                let signIn = [
                    "sign-in", "--server", server.url, "--code", code, "--home", phone,
                ]
                let refused = try await stage.run(signIn)
                #expect(refused.status == 64 && refused.errors.contains("is not sealed any more"))
                let next = try await server.newCode()
                let again = try await stage.succeed(
                    signIn.map { $0 == code ? next : $0 } + ["--yes"])
                #expect(again.contains("The account is not sealed, according to its server"))
                let gone = try await stage.run(["get", "a", "--home", phone] + Self.store)
                #expect(gone.status == 1)
                try await set("b", "2", phone, stage)

                // A server that is not honest would say the same to a device without a key.
                for command in [
                    ["encryption", "status"], ["unlock"], ["encryption", "on", "--yes"],
                ] {
                    let said = try await stage.run(command + ["--home", locked])
                    complains(said, 77, "was sealed when this device last heard of it")
                    #expect(said.errors.contains("run `ubiquity sign-out` and sign in again"))
                }
                #expect(try await sync(locked, stage).status == 77)
                let status = try await stage.succeed("status", "--home", locked)
                #expect(status.contains("not as before"), "\(status)")
                #expect(
                    try await stage.run(["get", "c", "--home", phone] + Self.store).status == 1)
                try await stage.succeed("sign-out", "--home", locked)
                try await stage.succeed(
                    "sign-in", "--server", server.url, "--code", try await server.newCode(),
                    "--yes", "--home", locked)
                #expect(try await sync(locked, stage).status == 0)
                #expect(try await get("c", phone, stage) == "3")
            }
        }

        @Test func `a device without the key announces a reset, and one with it withdraws that`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await seal(laptop, on: stage)
                try await set("a", "1", laptop, stage)
                let locked = try await server.newHome("locked")
                let announced = "has asked to have all values deleted"
                func status(_ home: String) async throws -> String {
                    try await stage.succeed("encryption", "status", "--home", home)
                }
                #expect(try await status(locked).contains("It was sealed by laptop ("))
                let said = try await stage.succeed(
                    "encryption", "reset", "--yes", "--home", locked)
                #expect(said.contains("unless a device with the account's key reaches it before"))
                #expect(try await status(locked).contains(announced))
                #expect(try await sync(locked, stage).status == 77)
                #expect(try await status(locked).contains(announced))
                #expect(try await sync(laptop, stage).status == 0)
                try await until("the end of the announcement") {
                    try await !status(locked).contains(announced)
                }
                #expect(try await get("a", laptop, stage) == "1")
                // The operator needs no key.
                let reset = ["account", "reset", "ada", "--data", server.data]
                #expect(try await stage.run(reset).status == 64)
                try await stage.succeed(reset + ["--yes"])
                complains(try await stage.run(reset + ["--yes"]), 77, "The account is not sealed")
                let log = try await stage.succeed("audit", "--data", server.data)
                for deed in ["account-reset-announced", "account-reset-withdrawn"] {
                    #expect(log.contains(deed), "\(log)")
                }
            }
        }

        /// A server could be set back after the command, or lie.
        @Test func `what a command has heard of the sealing, the whole device knows`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let phone = try await server.newHome("phone")
                try await seal(laptop, on: stage)
                let said = try await stage.succeed("encryption", "status", "--home", phone)
                #expect(said.contains("this device does not have its key"))
                try await stage.succeed(
                    ["account", "reset", "ada", "--data", server.data, "--yes"])
                _ = try await stage.run(["set", "k", "1", "--home", phone] + Self.store)
                #expect(try await sync(phone, stage).status == 77)
            }
        }

        @Test func `of two devices that seal the account at once, one is told to get the key`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let homes = [
                    try await server.newHome("a", isFirst: true), try await server.newHome("b"),
                ]
                try await set("a", "1", homes[0], stage)
                try await set("b", "2", homes[1], stage)
                let inputs = [Pipe(), Pipe()]
                let children = try zip(homes, inputs).map { home, input in
                    try stage.start(["encryption", "on", "--yes", "--home", home], input: input)
                }
                var keys: [String] = []
                for child in children { keys.append(try await child.recoveryKey()) }
                for (input, key) in zip(inputs, keys) {
                    try input.fileHandleForWriting.write(contentsOf: Data("\(key)\n".utf8))
                }
                let statuses = [try await children[0].exit(), try await children[1].exit()]
                #expect(statuses.sorted() == [0, 77], "\(children.map(\.lastWords))")
                let loser = statuses[0] == 0 ? 1 : 0
                #expect(children[loser].errors.contains("`ubiquity unlock` gets it"))
                #expect(try DeviceHome(path: homes[loser]).load().proposal == nil)
                try await unlock(homes[loser], with: homes[1 - loser], on: stage)
                for home in homes {
                    #expect(try await get("a", home, stage) == "1")
                    #expect(try await get("b", home, stage) == "2")
                }
            }
        }

        @Test func `a sealing that was killed is finished`() async throws {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await set("a", "1", laptop, stage)
                let home = try DeviceHome(path: laptop)
                let account = try #require(try home.load().signedIn)
                // Killed before the server was told.
                let proposal = try #require(Keyring([:]).adding(.random(), at: 1_795_000_000))
                try home.update { $0.proposal = proposal }
                let status = try await stage.succeed("encryption", "status", "--home", laptop)
                #expect(status.contains("is not sealed"))
                #expect(try home.load().proposal == proposal)
                // Killed then.
                let key = RecoveryKey.random()
                let wrap = try #require(key.wrap(proposal))
                try await AccountClient.seal(
                    proposal, recovery: wrap, after: 0, account)
                #expect(try home.load().keyring == nil)
                let finished = try await stage.succeed(
                    "encryption", "status", "--home", laptop, "--json")
                #expect(finished.contains(#""unsealed":[]"#), "\(finished)")
                #expect(try home.load().keyring == proposal)
                #expect(try await get("a", laptop, stage) == "1")
                // For good, with the next key: another device goes on, by the recovery key.
                let next = try #require(proposal.adding(.random(), at: 1))
                try home.update { $0.proposal = next }
                let paper = RecoveryKey.random()
                let nextWrap = try #require(paper.wrap(next))
                try await AccountClient.seal(
                    next, recovery: nextWrap, after: proposal.current, account)
                let fresh = try await server.newHome("fresh")
                let recovered = try await recover(fresh, with: paper.text, on: stage)
                #expect(recovered.status == 0, "\(recovered.errors)")
                let unfinished = try await stage.succeed(
                    "encryption", "status", "--home", fresh, "--json")
                #expect(unfinished.contains(#""unsealed":["TEAM."#), "\(unfinished)")
                let whole = try await stage.succeed(
                    "encryption", "on", "--yes", "--home", fresh, "--json")
                #expect(whole.contains(#""hasKey":true,"unsealed":[]"#), "\(whole)")
                #expect(try await get("a", fresh, stage) == "1")
            }
        }

        @Test func `a person's export is open, and the operator's is not imported`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                try await seal(laptop, on: stage)
                try await set("a", "readable", laptop, stage)
                try await set("a", "readable again", laptop, stage)
                let (own, other) = (stage.path("own.json"), stage.path("other.json"))
                try await stage.succeed(
                    "account", "export", "--output", own, "--with-history", "--home", laptop)
                let text = try String(contentsOfFile: own, encoding: .utf8)
                #expect(text.contains("readable again") && !text.contains("sealed"))
                #expect(text.contains("\"readable\""))
                try await stage.succeed(
                    ["account", "export", "ada", "--output", other] + server.operatorOptions)
                #expect(
                    try !String(contentsOfFile: other, encoding: .utf8).contains("readable"))
                let eve = try await server.newHome("eve", isFirst: true, account: "eve")
                let refused = try await stage.run("import", other, "--home", eve)
                #expect(refused.status == 65 && refused.errors.contains("its value is sealed"))
                try await stage.succeed("import", own, "--home", eve)
                #expect(try await get("a", eve, stage) == "readable again")
            }
        }

        /// Passes requests on, and denies from some time on that anything was left for a device, and that
        /// the account is sealed.
        private func proxy(
            to server: ServerProcess, isDenying: @escaping @Sendable () -> Bool
        ) async throws -> StubServer {
            try await StubServer { [url = server.url] request in
                if request.method == .GET, isDenying() {
                    if request.uri == "/v1/sealing" { return .init(body: []) }
                    if request.uri.hasPrefix("/v1/handovers/") {
                        let problem = #"{"code":"not-found","detail":"there is no handover"}"#
                        return .init(
                            "application/problem+json", status: .notFound, Array(problem.utf8))
                    }
                }
                guard let address = URL(string: url + request.uri) else { return nil }
                var asked = URLRequest(url: address)
                asked.httpMethod = request.method.rawValue
                asked.httpBody = Data(request.body)
                for name in ["Accept", "Authorization", "Content-Type"] {
                    asked.setValue(request.headers.first(name: name), forHTTPHeaderField: name)
                }
                let done = DispatchSemaphore(value: 0)
                let reply = Mutex<StubServer.Reply?>(nil)
                URLSession.shared.dataTask(with: asked) { data, response, _ in
                    if let answer = response as? HTTPURLResponse {
                        let type = answer.value(forHTTPHeaderField: "Content-Type")
                        let status = HTTPResponseStatus(statusCode: answer.statusCode)
                        reply.withLock {
                            $0 =
                                type.map { .init($0, status: status, [UInt8](data ?? Data())) }
                                ?? .init(status: status)
                        }
                    }
                    done.signal()
                }.resume()
                done.wait()
                return reply.withLock(\.self)
            }
        }

        @Test
        func `a server that keeps the key back and denies the seal starts no device in clear`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let isDenying = Mutex(false)
                let proxy = try await proxy(to: server) { isDenying.withLock(\.self) }
                let laptop = try await server.newHome(
                    "laptop", isFirst: true, through: proxy.address)
                try await seal(laptop, on: stage)
                let phone = stage.path("phone")
                _ = try await stage.run(
                    ["set", "mine", "in clear text", "--home", phone] + Self.store)
                isDenying.withLock { $0 = true }
                let (asking, code) = try await showing(
                    ["sign-in", "--server", proxy.address, "--home", phone], on: stage)
                let approved = try await typing(
                    code, to: ["approve", "--yes", "--home", laptop], on: stage)
                #expect(approved.output.contains("It gets the account's key."), "\(approved)")
                #expect(try await asking.exit() == 64, "\(asking.lastWords)")
                #expect(asking.errors.contains("No device of the account has answered"))
                #expect(try DeviceHome(path: phone).load().signedIn == nil)
                // By the code of a device, too, and where a person says no.
                let paired = try await pair(laptop, on: stage)
                #if os(Linux)
                let asked = try await PseudoTerminal.run(
                    ["sign-in", paired, "--home", phone], answer: "\n", on: stage)
                #expect(asked.contains("[y/N]") && asked.contains("was not signed in"), "\(asked)")
                #expect(try DeviceHome(path: phone).load().signedIn == nil)
                #endif
                #expect(try await UbiquityAccount.devices(home: laptop).count == 1)
                #expect(try files(of: server.data, with: "in clear text").isEmpty)
                // An honest server, then.
                isDenying.withLock { $0 = false }
                let signedIn = try await stage.succeed(
                    "sign-in", pair(laptop, on: stage), "--home", phone)
                #expect(signedIn.contains("this device has its key"))
                try await proxy.close()
            }
        }

        #if os(Linux)
        @Test func `a recovery key is not shown where it is typed, and may have two lines`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(stage)
                let laptop = try await server.newHome("laptop", isFirst: true)
                let key = try await seal(laptop, on: stage)
                let phone = try await server.newHome("phone")
                let rest = String(key.dropFirst(24)).replacing("-", with: "–")
                let lines: [String] = ["7KQ2-M9XD", String(key.prefix(24)), rest]
                let typed = Mutex(0)
                let shown = try await PseudoTerminal.run(
                    ["unlock", "--recovery", "--home", phone], answer: "", on: stage
                ) { text, terminal in
                    let next = typed.withLock { (count: inout Int) -> String? in
                        let questions = text.matches(of: /key:|rest of it:/).count
                        guard questions > count, count < lines.count else { return nil }
                        count += 1
                        return lines[count - 1]
                    }
                    if let next { terminal.type(next + "\n") }
                }
                #expect(shown.contains("This device has the account's key now."), "\(shown)")
                #expect(shown.contains("and this has 8") && !shown.contains("7KQ2"), "\(shown)")
                #expect(!shown.contains(key.prefix(9)) && !shown.contains(key.suffix(9)))
            }
        }
        #endif

        // MARK: - What the server has

        /// The files of a folder that contain the text.
        private func files(of folder: String, with text: String) throws -> [String] {
            let names = try FileManager.default.subpathsOfDirectory(atPath: folder)
            return names.filter { name in
                let bytes = try? Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)"))
                return bytes?.range(of: Data(text.utf8)) != nil
            }
        }

        @Test func `no value is in the database, the log or on the wire once it is sealed`()
            async throws
        {
            try await onStage { stage in
                let server = try await ServerProcess.started(
                    stage, options: ServerProcess.manyPushes)
                let wire = Mutex([UInt8]())
                let port = URLComponents(string: server.url)?.port ?? 0
                let relay = try Relay(to: { [port] }) { bytes, _ in
                    wire.withLock { $0 += bytes.readableBytesView }
                }
                let address = try await relay.plugIn()
                let laptop = try await server.newHome("laptop", isFirst: true, through: address)
                let device = try Device(home: laptop)
                defer { device.close() }
                func write(_ mark: String) async throws {
                    for number in 0..<500 {
                        device.store.set("\(mark) \(number)", forKey: "\(mark.prefix(3))\(number)")
                    }
                    try await device.store.synchronizeNow()
                }
                func isOnWire(_ mark: String) -> Bool {
                    wire.withLock { Data($0).range(of: Data(mark.utf8)) != nil }
                }
                let marks = ["one secret that is looked for", "two secrets that are looked for"]
                try await write(marks[0])
                // Once more, so that it is in the history.
                try await write(marks[0] + "!")
                #expect(isOnWire(marks[0]))
                #expect(try !files(of: server.data, with: marks[0]).isEmpty)
                try await seal(laptop, on: stage)
                wire.withLock { $0 = [] }
                // The round trip may fail, because the store was replaced under it.
                try? await write(marks[1])
                try await until("the writes' arrival") { device.isSettled && device.isConnected }
                #expect(device.texts.count == 1_000)
                try await until("nothing in clear in the files") {
                    try marks.allSatisfy { try files(of: server.data, with: $0).isEmpty }
                }
                #expect(marks.allSatisfy { !isOnWire($0) })
                #expect(wire.withLock { !$0.isEmpty })
                // The log, too.
                #expect(
                    try marks.allSatisfy {
                        try files(of: stage.path("processes"), with: $0).isEmpty
                    }
                )
                // What has no place on the wire, and is on the disks of devices alone.
                let phone = stage.path("phone")
                try await stage.succeed("sign-in", pair(laptop, on: stage), "--home", phone)
                let seen = try await stage.succeed(
                    ["list", "--home", phone, "--json"] + Self.store)
                #expect(marks.allSatisfy { seen.contains($0) })
                #expect(marks.allSatisfy { !isOnWire($0) })
                let secret = try #require(try keyring(laptop)?.fields)
                if case .dictionary(let fields) = secret, case .string(let key)? = fields["1"] {
                    #expect(!isOnWire(key.string))
                }
                relay.pullOut()
            }
        }

        @Test(.enabled(if: PostgresServer.isInstalled))
        func `no row of PostgreSQL has a value once it is sealed`() async throws {
            let database = try PostgresServer.started()
            try await onStage { stage in
                let server = ServerProcess(stage, database: database.url())
                try await server.start()
                let laptop = try await server.newHome("laptop", isFirst: true)
                for value in ["looked for", "looked for again"] {
                    try await set("a", value, laptop, stage)
                }
                func rows() throws -> String {
                    let found = ["record", "version"].map { table in
                        """
                        (SELECT count(*) FROM ubiquity.\(table)
                            WHERE position(convert_to('looked for', 'UTF8') IN value) > 0)
                        """
                    }
                    return try database.query("SELECT \(found.joined(separator: " + "))")
                }
                #expect(try rows() == "2")
                try await seal(laptop, on: stage)
                try await until("no row in clear") { try rows() == "0" }
                #expect(try await get("a", laptop, stage) == "looked for again")
                let phone = stage.path("phone")
                try await stage.succeed("sign-in", pair(laptop, on: stage), "--home", phone)
                #expect(try await get("a", phone, stage) == "looked for again")
                try await server.stop()
            }
        }
    }
}
