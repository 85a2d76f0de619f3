// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Ubiquity

/// A store in a folder of its own, on a device that nobody is signed in to.
///
/// Opened again on the same folder, it is the app after a restart.
struct LocalStore {
    let folder: TemporaryFolder
    let home: DeviceHome
    let store: UbiquitousKeyValueStore

    init(
        in folder: TemporaryFolder? = nil,
        _ configure: (inout UbiquityConfiguration) -> Void = { _ in }
    ) throws {
        let folder = try folder ?? TemporaryFolder()
        var configuration = UbiquityConfiguration(
            identifier: "TEAM.com.example.local", home: folder.path)
        configuration.logger = .silent
        configure(&configuration)
        self.folder = folder
        home = try DeviceHome(path: folder.path)
        store = try UbiquitousKeyValueStore(configuration: configuration)
    }
}
