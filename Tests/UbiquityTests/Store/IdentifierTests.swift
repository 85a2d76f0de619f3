// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Logging
import Testing
import UbiquityCore

@testable import Ubiquity

/// Tests which store an app's values belong to, and what decides that.
@Suite struct `A store's identifier` {
    private static let variable = UbiquityConfiguration.identifierVariable
    private let folder: TemporaryFolder
    private let program: URL

    init() throws {
        folder = try TemporaryFolder()
        program = URL(fileURLWithPath: folder.file("notes"))
    }

    private func identity(
        code: String? = nil, environment: [String: String] = [:], program: URL? = nil
    ) throws -> StoreIdentity {
        try UbiquityConfiguration(identifier: code).identity(
            environment: environment, program: program ?? self.program)
    }

    private func write(_ content: String, to name: String) throws {
        try Data(content.utf8).write(to: URL(fileURLWithPath: folder.file(name)))
    }

    private func entitle(_ identifier: String, in name: String) throws {
        let key = "com.apple.developer.ubiquity-kvstore-identifier"
        try write(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <plist version="1.0"><dict>
            <key>com.apple.security.app-sandbox</key><true/>
            <key>\(key)</key><string>\(identifier)</string>
            </dict></plist>
            """, to: name)
    }

    @Test func `is the code's, else the environment's, else that of the entitlements`() throws {
        try entitle("TEAM.file", in: "notes.entitlements")
        let environment = [Self.variable: "TEAM.environment"]
        let both = try identity(code: "TEAM.code", environment: environment)
        #expect(both.identifier?.string == "TEAM.code")
        #expect(try identity(environment: environment).identifier?.string == "TEAM.environment")
        #expect(try identity().identifier?.string == "TEAM.file")
        #expect(try identity().warning == nil)
        // An empty variable is as good as none.
        #expect(try identity(environment: [Self.variable: ""]).identifier?.string == "TEAM.file")
    }

    @Test func `is refused where the code gives an empty one, and not taken from elsewhere`() {
        let error = #expect(throws: UbiquityError.self) {
            try identity(code: "", environment: [Self.variable: "TEAM.environment"])
        }
        #expect(error?.code == .invalid)
    }

    @Test func `that is malformed is refused with its source and with one that would do`() {
        let fromCode = #expect(throws: UbiquityError.self) { try identity(code: "my app") }
        #expect(fromCode?.description.contains("from the app") == true)
        let variable = [Self.variable: "my app"]
        let error = #expect(throws: UbiquityError.self) { try identity(environment: variable) }
        #expect(error?.description.contains("from the variable \(Self.variable)") == true)
        #expect(error?.description.contains("Use one such as TEAMID.com.example.app") == true)
    }

    @Test func `comes from the entitlements with the program's name where there are several`()
        throws
    {
        try entitle("TEAM.other", in: "a.entitlements")
        try entitle("TEAM.notes", in: "notes.entitlements")
        #expect(try identity().identifier?.string == "TEAM.notes")
    }

    @Test func `comes from the only entitlements there are, whatever their name`() throws {
        try entitle("TEAM.only", in: "Some App.entitlements")
        #expect(try identity().identifier?.string == "TEAM.only")
        try entitle("TEAM.second", in: "other.entitlements")
        #expect(try identity().identifier == nil, "nothing says which of the two")
    }

    @Test func `is not taken from one with a variable that nobody fills in, and says so`() throws {
        let text = "$(TeamIdentifierPrefix)com.example.notes"
        try entitle(text, in: "notes.entitlements")
        let identity = try identity()
        #expect(identity.identifier == nil)
        let warning = try #require(identity.warning)
        #expect(warning.code == .notConfigured)
        #expect(warning.description.contains("notes.entitlements has \(text)"))
        #expect(warning.description.contains("replace the variable with its value"))
    }

    @Test(arguments: [
        ("not a property list {", "not a property list"),
        ("<?xml version=\"1.0\"?><plist version=\"1.0\"><dict/></plist>", "has no com.apple"),
        (
            """
            <?xml version="1.0"?><plist version="1.0"><dict>
            <key>com.apple.developer.ubiquity-kvstore-identifier</key><true/></dict></plist>
            """, "has no com.apple"
        ),
    ])
    func `is none where the entitlements do not say it, and says so`(
        content: String, sentence: String
    ) throws {
        try write(content, to: "notes.entitlements")
        let identity = try identity()
        #expect(identity.identifier == nil)
        #expect(identity.warning?.description.contains(sentence) == true)
        #expect(identity.warning?.description.contains("do not sync") == true)
    }

    @Test(arguments: ["a/b", "..", "a b", String(repeating: "a", count: 1_000)])
    func `that is malformed is an error of who gave it`(identifier: String) throws {
        let error = #expect(throws: UbiquityError.self) { try identity(code: identifier) }
        #expect(error?.code == .invalid)
        #expect(error?.description.contains("from the app") == true)
        try entitle(identifier, in: "notes.entitlements")
        let ofFile = #expect(throws: UbiquityError.self) { try identity() }
        #expect(ofFile?.description.contains("notes.entitlements") == true)
    }

    @Test func `is reported as missing, once; values are still stored, on this machine`() throws {
        let log = LogRecorder()
        func open(in folder: TemporaryFolder? = nil) throws -> LocalStore {
            try LocalStore(in: folder) {
                $0.identifier = nil
                $0.logger = log.logger
            }
        }
        let first = try open()
        #expect(log.lines.map(\.level) == [.error])
        #expect(log.lines.first?.text.contains("no store identifier") == true)
        #expect(first.store.status.connection == .notConfigured)
        first.store.set("value", forKey: "a")
        #expect(!first.store.synchronize())
        #expect(first.store.string(forKey: "a") == "value")
        #expect(log.lines.count == 1)
        first.store.close()

        let second = try open(in: first.folder)
        #expect(second.store.string(forKey: "a") == "value")
        #expect(!second.store.synchronize())
    }

    @Test(arguments: Array(236...255))
    func `that is long has a file all the same`(count: Int) throws {
        let identifier = String(repeating: "a", count: count)
        let first = try LocalStore { $0.identifier = identifier }
        first.store.set("value", forKey: "a")
        #expect(first.store.synchronize())
        first.store.close()
        let second = try LocalStore(in: first.folder) { $0.identifier = identifier }
        #expect(second.store.string(forKey: "a") == "value")
        #expect(try second.home.storeFiles(in: "1").count == 1)
    }

    @Test func `that differs from another in the case of letters only has a file of its own`()
        throws
    {
        let first = try LocalStore { $0.identifier = "TEAM.App" }
        let second = try LocalStore(in: first.folder) { $0.identifier = "team.app" }
        first.store.set("first", forKey: "a")
        second.store.set("second", forKey: "a")
        for store in [first.store, second.store] {
            #expect(store.synchronize())
            store.close()
        }
        let names = try first.home.storeFiles(in: "1").map { $0.path.lowercased() }
        #expect(Set(names).count == 2)
        // In the other order, too.
        let again = try LocalStore(in: first.folder) { $0.identifier = "team.app" }
        #expect(again.store.string(forKey: "a") == "second")
        let other = try LocalStore(in: first.folder) { $0.identifier = "TEAM.App" }
        #expect(other.store.string(forKey: "a") == "first")
    }

    @Test func `is missed by who asks for a round trip`() async throws {
        let local = try LocalStore { $0.identifier = nil }
        for call in [local.store.synchronizeNow, local.store.initialSync] {
            let error = await #expect(throws: UbiquityError.self) { try await call() }
            #expect(error?.code == .notConfigured)
        }
    }

    @Test(arguments: [
        ("notes", "tasks"), ("notes.beta", "notes"), ("notes.beta", "notes-beta"),
        ("nötes", "nätes"), ("a_b", "a b"),
    ])
    func `that is missing does not count as another program's`(one: String, other: String) throws {
        let names = try [one, other].map {
            try identity(program: URL(fileURLWithPath: folder.file($0))).fileName
        }
        #expect(names[0] != names[1])
        // Nor that of any program that has one.
        #expect(names.allSatisfy { (try? identity(code: $0)) == nil })
    }
}
