// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Ubiquity
internal import UbiquityCore

extension FuzzEntry {
    /// The file that has a device's sign-in.
    static var account: FuzzEntry {
        FuzzEntry("account", stack: .system, bytesMax: 4_096) {
            Samples.accounts().mapValues { Array($0.utf8) }
        } check: { bytes in
            let folder = try ScratchFolder()
            _ = try folder.write(bytes, to: DeviceHome.accountFileName)
            let home = try DeviceHome(path: folder.path)
            let state: DeviceState
            do throws(HomeError) { state = try home.load() } catch {
                return try must(!error.description.isEmpty, "an error says nothing")
            }
            try checkTransitions(state, home)
        }
    }

    /// Checks that a state is read as it was written, whoever signs in or out.
    private static func checkTransitions(_ state: DeviceState, _ home: DeviceHome) throws {
        for folder in [state.folder] + state.folders.values.map(\.string) {
            try must(
                !folder.isEmpty && !folder.contains { "./\\".contains($0) }, "no folder's name")
        }
        let signedIn = try home.update { $0.signIn(Samples.account) }
        try must(try home.load() == signedIn, "a sign-in changed on the disk")
        let own = signedIn.folders[ExactString(Samples.account.account)]
        try must(own?.string == signedIn.folder, "no folder is its")
        try home.update { _ = $0.signOutWiping() }
        try home.update { $0 = state }
        try must(try home.load() == state, "a state changed on the disk")
        if let account = state.signedIn { _ = try? ServerAddress(account.server) }
    }

    /// The property list that may name a store.
    static var entitlements: FuzzEntry {
        FuzzEntry("entitlements", stack: .system, bytesMax: 4_096) {
            Samples.entitlements().mapValues { Array($0.utf8) }
        } check: { bytes in
            let folder = try ScratchFolder()
            let path = try folder.write(bytes, to: "app.entitlements")
            switch Entitlements.identifier(in: URL(fileURLWithPath: path)) {
            case .success(let text):
                try must(!text.contains("$("), "a variable is no name")
                _ = try? StoreIdentifier(text)
            case .failure(let error):
                try must(!error.description.isEmpty, "an error says nothing")
            }
        }
    }
}
