// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import Ubiquity
import UbiquityCore

struct DeviceHomeTests {
    private let folder: TemporaryFolder
    private let home: DeviceHome
    private let file: String

    init() throws {
        folder = try TemporaryFolder()
        home = try DeviceHome(path: folder.file("a/home"))
        file = folder.file("a/home/account.json")
    }

    private let account = SignedInAccount(
        server: "https://example.org/base", account: "42", accountName: "Ada", device: "00ff",
        deviceName: "desk", credential: "secret")

    @Test func `a sign-in is there for the next process`() throws {
        try home.update { $0.signIn(account) }
        #expect(try DeviceHome(path: home.path).load().signedIn == account)
        #expect(try home.storePath(for: "x.y", folder: "2") == home.path + "/stores/2/x.y.sqlite")
    }

    @Test func `the certificates and the key to trust are kept with a sign-in`() throws {
        var pinned = account
        pinned.certificates = "-----BEGIN CERTIFICATE-----\n...\n"
        pinned.pin = "sha256//...="
        try home.update { $0.signIn(pinned) }
        #expect(try DeviceHome(path: home.path).load().signedIn == pinned)
        try home.update { $0.signIn(account) }
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(!text.contains("certificates") && !text.contains("pin"))
        #expect(try home.load().signedIn == account)
    }

    @Test func `without a file the device never signed in`() throws {
        #expect(try home.load() == DeviceState())
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func `a change that changes nothing writes nothing`() throws {
        try home.update { $0.signOut() }
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    #if !os(Windows)
    @Test func `only the person can access the file and the folder`() throws {
        try home.update { $0.signIn(account) }
        #expect(try TemporaryFolder.permissions(file) == 0o600)
        #expect(try TemporaryFolder.permissions(home.path) == 0o700)
    }

    @Test func `a folder that others can put files into is no device's home`() throws {
        try home.update { $0.signIn(account) }
        for mode in [0o770, 0o707, 0o777] {
            chmod(home.path, mode_t(mode))
            #expect(throws: HomeError.writableByOthers(home.path)) {
                try DeviceHome(path: home.path)
            }
        }
        chmod(home.path, 0o755)
        #expect(try DeviceHome(path: home.path).load().signedIn == account)
    }

    /// Only root can make another user's files.
    @Test(.enabled(if: geteuid() == 0))
    func `another user's folder or sign-in is not used`() throws {
        try home.update { $0.signIn(account) }
        chown(file, 65_534, 65_534)
        #expect(throws: HomeError.ofAnotherUser("The file \(file)")) { try home.load() }
        #expect(throws: HomeError.ofAnotherUser("The file \(file)")) {
            try home.update { $0.signOut() }
        }
        chown(file, 0, 0)
        chown(home.path, 65_534, 65_534)
        #expect(throws: HomeError.ofAnotherUser("The folder \(home.path)")) {
            try DeviceHome(path: home.path)
        }
    }

    /// As with `sudo -E`, which keeps the user's environment.
    @Test(.enabled(if: geteuid() == 0))
    func `no folder is made in another user's, where it would be in that user's way`() throws {
        let person = folder.file("person")
        mkdir(person, 0o755)
        chown(person, 65_534, 65_534)
        let home = try DeviceHome(path: person + "/.local/share/ubiquity")
        #expect(throws: HomeError.ofAnotherUser("The folder above \(home.path)")) {
            try home.update { $0.signIn(account) }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: person).isEmpty)
        chown(person, 0, 0)
        try home.update { $0.signIn(account) }
        #expect(try home.load().signedIn == account)
    }

    @Test func `a credential that others can read is not used, nor written over`() throws {
        try home.update { $0.signIn(account) }
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file)
        #expect(throws: HomeError.credentialReadableByOthers(file)) { try home.load() }
        #expect(throws: HomeError.credentialReadableByOthers(file)) {
            try home.update { $0.signOut() }
        }
    }
    #endif

    private func write(_ content: String) {
        try? FileManager.default.createDirectory(
            atPath: home.path, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        _ = FileManager.default.createFile(
            atPath: file, contents: Data(content.utf8), attributes: [.posixPermissions: 0o600])
    }

    @Test func `a null is as if its field were absent, and unknown fields are ignored`() throws {
        write(
            """
            {"folder": "2", "folders": {"42": "2", "43": null}, "lastFolder": 7, "signedIn": null,
            "later": [null, true, 1.5, {"a": null, "b": 18446744073709551615}]}
            """)
        var state = DeviceState()
        (state.folder, state.folders, state.lastFolder) = ("2", ["42": "2"], 7)
        #expect(try home.load() == state)
    }

    @Test(arguments: [
        "", "{", "[]", "null", "{\"folder\": 1, \"folders\": {}}", "{\"folders\": {}}",
        "{\"folder\": \"1\", \"folders\": {}} x",
        "{\"folder\": \"1\", \"folders\": {}, \"lastFolder\": true}",
    ])
    func `a damaged file is named and left as it is`(_ content: String) throws {
        write(content)
        let error = #expect(throws: HomeError.self) { try home.update { $0.signIn(account) } }
        #expect(error?.description.contains(file) == true)
        #expect(try String(contentsOfFile: file, encoding: .utf8) == content)
    }

    @Test func `changes of several at once are all kept`() async throws {
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask { [home] in
                    _ = try? home.update { $0.folders["\(number)"] = "x" }
                }
            }
        }
        #expect(try home.load().folders.count == 20)
    }

    @Test func `a folder that cannot be made is named`() throws {
        try Data().write(to: URL(fileURLWithPath: folder.file("f")))
        let error = #expect(throws: HomeError.self) { try DeviceHome(path: folder.file("f/home")) }
        #expect(error?.description.contains(folder.file("f/home")) == true)
    }

    @Test func `every reason why a store cannot be opened says what to do`() {
        let (path, cause) = ("/home/ada/store", "the cause")
        let sentences =
            [
                HomeError.noPlace, .credentialReadableByOthers(path), .writableByOthers(path),
                .ofAnotherUser(path), .damaged(path, cause: cause), .unreadable(path, cause: cause),
                .unwritable(path, cause: cause),
            ].map(\.description)
            + LocalStorageError.Reason.allCases.map {
                LocalStorageError($0, path: path, cause: cause).description
            }
        let advice = #/(\. |; )(Set|Make|Run|Move|Update|free|End|Try) /#
        for sentence in sentences {
            #expect(sentence.contains(advice) && sentence.hasSuffix("."), "\(sentence)")
        }
    }

    #if os(Linux)
    @Test func `the folder is the given one, else the environment's, else the platform's`() {
        let all = ["UBIQUITY_HOME": "/u", "XDG_DATA_HOME": "/x", "HOME": "/h"]
        #expect(DeviceHome.resolve("/p", environment: all) == "/p")
        #expect(DeviceHome.resolve(nil, environment: all) == "/u")
        #expect(
            DeviceHome.resolve(nil, environment: ["XDG_DATA_HOME": "/x", "HOME": "/h"])
                == "/x/ubiquity")
        #expect(
            DeviceHome.resolve(nil, environment: ["UBIQUITY_HOME": "", "HOME": "/h"])
                == "/h/.local/share/ubiquity")
        #expect(DeviceHome.resolve(nil, environment: [:]) == nil)
    }
    #endif

    @Test func `a device that nobody names has its host's name, without a domain`() {
        let names = ["laptop", "ada.local", "ip-10-0-0-1.ec2.internal", "10.0.0.1", "fd00::1", ""]
        #expect(
            names.map(DeviceHome.deviceName) == [
                "laptop", "ada", "ip-10-0-0-1", "10.0.0.1", "fd00::1", "",
            ])
    }
}
